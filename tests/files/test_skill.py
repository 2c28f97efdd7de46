"""Skills in the Agent Skills format."""

from __future__ import annotations

import pytest

from agex.errors import DefinitionError
from agex.files.skill import front_matter, read_skill

TEXT = b"---\nname: my-skill\ndescription: How to do it.\n---\n# Do it\n"

HEADS = {
    "plain": ("description: How: to # do", "How: to"),
    "single quotes": ("description: 'It''s # so'", "It's # so"),
    "double quotes": ('description: "a \\"b\\""', 'a "b"'),
    "folded": ("description: >\n  one\n  two\n\n  three", "one two\n\nthree"),
    "folded and chomped": ("description: >-\n  one\n  two", "one two"),
    "literal": ("description: |\n  one\n  two", "one\ntwo"),
    "continued": ("description: one\n  two\n  three", "one two three"),
    "beside nested ones": ("metadata:\n  author: x\n  description: no\ndescription: yes", "yes"),
    "windows line ends": ("description: a\r", "a"),
}


@pytest.mark.parametrize(("head", "expected"), HEADS.values(), ids=HEADS)
def test_texts_of_the_front_matter_are_read(head, expected):
    assert front_matter(f"---\n{head}\n---\nrest: no")["description"] == expected


def test_a_text_without_front_matter_has_none():
    assert front_matter("# Title\nname: x") == {}
    assert front_matter("---\nname: x\nno end") == {}


def test_a_folder_is_read_with_all_its_files(tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "SKILL.md").write_bytes(TEXT)
    (tmp_path / "scripts" / "run.py").write_bytes(b"x = 1")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(b"secret")
    (tmp_path / "link").symlink_to("/etc/passwd")
    skill = read_skill(tmp_path)
    assert (skill.name, skill.description) == ("my-skill", "How to do it.")
    assert skill.files.list("/", True) == ["SKILL.md", "scripts", "scripts/run.py"]


def test_a_file_and_its_bytes_are_the_same_skill(tmp_path):
    (tmp_path / "SKILL.md").write_bytes(TEXT)
    assert read_skill(tmp_path / "SKILL.md") == read_skill(TEXT) == read_skill(str(tmp_path / "SKILL.md"))


@pytest.mark.parametrize(
    "text",
    [
        b"# no front matter",
        b"---\ndescription: no name\n---",
        b"---\nname: no-description\n---",
        b"---\nname: ../../etc\ndescription: x\n---",
        b"---\nname: Upper\ndescription: x\n---",
        b"---\nname: " + b"a" * 65 + b"\ndescription: x\n---",
        b"---\nname: a\ndescription: " + b"x" * 1025 + b"\n---",
        b"\xff\xfe",
    ],
)
def test_what_does_not_say_its_name_and_purpose_is_refused(text):
    with pytest.raises(DefinitionError):
        read_skill(text)


def test_a_missing_folder_and_one_without_a_skill_are_refused(tmp_path):
    with pytest.raises(DefinitionError, match="There is no skill at"):
        read_skill(tmp_path / "missing")
    with pytest.raises(DefinitionError, match=r"has no SKILL\.md"):
        read_skill(tmp_path)
