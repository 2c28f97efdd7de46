"""Folders and files that somebody else made: a link, a pipe or a device in a file's place is not followed."""

from __future__ import annotations

import contextlib
import os
import socket

import pytest

from agex.errors import DefinitionError
from agex.evals import read_cases
from agex.files import IsolatedFiles
from agex.files.skill import read_skill
from agex.models import Message
from agex.models.base import Request
from agex.regular_files import open_regular, read_regular
from agex.testing import RecordingModel, ReplayModel, ScriptedModel

SKILL = b"---\nname: my-skill\ndescription: How to do it.\n---\n# Do it\n"


def link(path, target):
    path.symlink_to(target)


def link_of_link(path, target):
    path.with_name("between").symlink_to(target)
    path.symlink_to(path.with_name("between"))


def dangling(path, target):
    path.symlink_to(target.with_name("begotten"))


def pipe(path, _):
    os.mkfifo(path)


def listening(path, _):
    before = os.getcwd()  # noqa: PTH109 - a socket's path is short
    os.chdir(path.parent)
    try:
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def endless(path, _):
    path.symlink_to("/dev/zero")


def device(path, _):
    if os.geteuid() != 0:
        pytest.skip("making a device needs a right that this user does not have")
    os.mknod(path, 0o666 | 0o020000, os.makedev(1, 5))  # zero


def folder(path, _):
    path.mkdir()


KINDS = [link, link_of_link, dangling, pipe, listening, endless, device, folder]


def record(path):
    request = Request(messages=[Message(role="user", content="hello")])
    RecordingModel(ScriptedModel(["answer"]), path).ask(request)


READERS = {
    "a skill": (read_skill, DefinitionError),
    "cases of an evaluation": (read_cases, OSError),
    "a cassette": (ReplayModel, OSError),
    "a cassette that is written": (record, OSError),
    "any file": (read_regular, OSError),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("read", "refusal"), READERS.values(), ids=READERS)
def test_what_is_no_regular_file_is_refused(tmp_path, read, refusal, kind):
    victim = tmp_path / "victim"
    victim.write_bytes(SKILL)
    kind(tmp_path / "given", victim)
    with pytest.raises(refusal):
        read(tmp_path / "given")
    assert victim.read_bytes() == SKILL
    assert not (tmp_path / "begotten").exists()


def test_a_cassette_with_another_name_is_not_written(tmp_path):
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / "given").hardlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="another name"):
        record(tmp_path / "given")
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_a_cassette_is_recorded_and_replayed_all_the_same(tmp_path):
    record(tmp_path / "tape")
    record(tmp_path / "tape")
    request = Request(messages=[Message(role="user", content="hello")])
    replayed = ReplayModel(tmp_path / "tape")
    assert [replayed.ask(request).text for _ in range(2)] == ["answer", "answer"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", ["SKILL.md", "notes.md"])
def test_what_is_no_regular_file_of_a_skill_is_none_of_its_files(tmp_path, kind, name):
    (tmp_path / "victim").write_bytes(SKILL)
    (tmp_path / "skill").mkdir()
    if name != "SKILL.md":
        (tmp_path / "skill" / "SKILL.md").write_bytes(SKILL)
    kind(tmp_path / "skill" / name, tmp_path / "victim")
    if name == "SKILL.md":
        with pytest.raises(DefinitionError, match=r"no SKILL\.md"):
            read_skill(tmp_path / "skill")
    else:
        assert set(read_skill(tmp_path / "skill").contents) == {"SKILL.md"}


def test_a_folder_behind_a_link_is_none_of_a_skills(tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_bytes(b"secret")
    (tmp_path / "skill").mkdir()
    (tmp_path / "skill" / "SKILL.md").write_bytes(SKILL)
    (tmp_path / "skill" / "more").symlink_to(tmp_path / "secrets")
    (tmp_path / "skill" / "round").symlink_to(tmp_path / "skill")
    assert set(read_skill(tmp_path / "skill").contents) == {"SKILL.md"}


def test_a_skill_that_an_installer_linked_is_read(tmp_path):
    (tmp_path / "cache").write_bytes(SKILL)
    (tmp_path / "skill").mkdir()
    (tmp_path / "skill" / "SKILL.md").hardlink_to(tmp_path / "cache")
    assert read_skill(tmp_path / "skill").name == "my-skill"
    (tmp_path / "current").symlink_to(tmp_path / "skill")
    assert read_skill(tmp_path / "current").name == "my-skill", "which folder it is is the caller's choice"


@pytest.mark.parametrize("kind", KINDS[:-1], ids=lambda kind: kind.__name__)
def test_what_is_no_regular_file_of_an_isolated_root_is_not_used(tmp_path, kind):
    (tmp_path / "victim").write_bytes(SKILL)
    (tmp_path / "root").mkdir()
    kind(tmp_path / "root" / "given", tmp_path / "victim")
    files = IsolatedFiles(tmp_path / "root")
    for use in (
        lambda: files.read("/given"),
        lambda: files.write("/given", b"x"),
        lambda: files.write("/given", b"x", "a"),
    ):
        with pytest.raises(OSError, match="given"):
            use()
    assert (tmp_path / "victim").read_bytes() == SKILL
    assert not (tmp_path / "begotten").exists()


def test_a_file_that_is_larger_than_it_may_be_is_not_read(tmp_path):
    (tmp_path / "large").write_bytes(bytes(1001))
    assert len(read_regular(tmp_path / "large", most=1001)) == 1001
    with pytest.raises(OSError, match="more than 1,000 bytes"):
        read_regular(tmp_path / "large", most=1000)


def test_a_file_that_is_made_anew_is_made_and_no_other_is_missing(tmp_path):
    os.close(open_regular(tmp_path / "new", os.O_WRONLY | os.O_CREAT))
    assert (tmp_path / "new").read_bytes() == b""
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "missing")
