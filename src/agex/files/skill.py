"""Skills: documentation that an agent reads when it needs it, in the Agent Skills format.

A skill is a folder with a ``SKILL.md``, which begins with its name and what it is for::

    ---
    name: quarterly-report
    description: How our quarterly reports are built. Read it before you write one.
    ---

Reference: agentskills.io, Specification.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agex.errors import DefinitionError
from agex.files.virtual_files import MemorySpace, VirtualFiles
from agex.regular_files import read_regular

__all__ = ["Skill", "read_skill"]

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_NAME, _LONGEST_DESCRIPTION = 64, 1024  # characters: the specification's
_MOST_BYTES = 20 * 1024 * 1024
_RIGHT = "---\nname: my-skill\ndescription: What it is for.\n---"


@dataclass(frozen=True, kw_only=True)
class Skill:
    """One skill, as it is mounted at ``/skills/NAME``."""

    name: str
    description: str
    contents: Mapping[str, bytes] = field(repr=False)
    """Its files, by path below its folder."""

    @property
    def files(self) -> VirtualFiles:
        """Its files as a tree."""
        tree = VirtualFiles(MemorySpace())
        for path, content in self.contents.items():
            tree.write(f"/{path}", content)
        return tree


def read_skill(source: str | os.PathLike[str] | bytes) -> Skill:
    """Read a skill: a folder with a ``SKILL.md``, such a file, or its bytes.

    Raises:
        DefinitionError: there is none, or it does not say its name and description.
    """
    if isinstance(source, bytes):
        return _skill({"SKILL.md": source}, "the skill")
    path = Path(source)
    if path.is_dir():
        contents = _folder(path)
        if "SKILL.md" not in contents:
            raise DefinitionError(
                f"{path} has no SKILL.md (links are none); a skill's folder begins with one:\n{_RIGHT}"
            )
        return _skill(contents, str(path / "SKILL.md"))
    try:
        content = read_regular(path, most=_MOST_BYTES)
    except OSError as error:
        raise DefinitionError(
            f"There is no skill at {path} ({error.strerror}): give a folder with a SKILL.md, or that file."
        ) from error
    return _skill({"SKILL.md": content}, str(path))


def _folder(root: Path) -> dict[str, bytes]:
    """Return the files of a folder; links, pipes and devices are none of them.

    A file with a second name (a hard link) is one: installers make them, and it is only read.
    """
    found: dict[str, bytes] = {}
    left = _MOST_BYTES
    for path in sorted(root.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if hidden or not stat.S_ISREG(path.lstat().st_mode):
            continue
        try:
            content = found[path.relative_to(root).as_posix()] = read_regular(path, most=left)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise DefinitionError(
                    f"The skill in {root} is larger than {_MOST_BYTES >> 20} MiB; keep data elsewhere."
                ) from error
            raise DefinitionError(f"The skill in {root} cannot be read: {path}: {error.strerror}") from error
        left -= len(content)
    return found


def _skill(contents: dict[str, bytes], where: str) -> Skill:
    try:
        head = front_matter(contents["SKILL.md"].decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{where} is not UTF-8 text.") from error
    name, description = head.get("name", ""), head.get("description", "")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise DefinitionError(
            f"{where} has the name {name!r}; give it one of lowercase letters, digits and hyphens:\n{_RIGHT}"
        )
    if not description or len(description) > _LONGEST_DESCRIPTION:
        raise DefinitionError(
            f"{where} needs a description of up to {_LONGEST_DESCRIPTION} characters, by which the agent "
            f"knows when to read it:\n{_RIGHT}"
        )
    return Skill(name=name, description=" ".join(description.split()), contents=contents)


def front_matter(text: str) -> dict[str, str]:
    """Return the top-level texts of the YAML between the two lines of hyphens; nested ones are left out.

    Plain, quoted, folded and literal texts are understood, which is what skills are written with.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if not lines or lines[0].rstrip() != "---":
        return {}
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
    found: dict[str, str] = {}
    key = ""
    blocks: dict[str, list[str]] = {}
    for line in lines[1:end]:
        match = re.match(r"([A-Za-z][\w-]*):(?:\s+(.*))?$", line)
        if match is not None:
            key = match[1]
            blocks[key] = [(match[2] or "").strip()]
        elif key and (line.startswith((" ", "\t")) or not line.strip()):
            blocks[key].append(line)
    for name, (first, *more) in blocks.items():
        found[name] = _text(first, more)
    return found


def _text(first: str, more: list[str]) -> str:
    body = textwrap.dedent("\n".join(more)).strip("\n")
    if first[:1] == "|":
        return body
    if first[:1] == ">":
        return re.sub(r"(?<!\n)\n(?!\n)", " ", body)
    text = " ".join([first, *body.split()]).strip()
    if text[:1] in ("'", '"') and text[-1:] == text[0] and len(text) > 1:
        inner = text[1:-1]
        return inner.replace("''", "'") if text[0] == "'" else inner.replace('\\"', '"').replace("\\n", "\n")
    return re.sub(r"\s+#.*$", "", text)
