"""The installation that a bug report is about: versions, extras and keys, by their names only."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib import metadata

from agex.models.resolve import PROVIDERS

__all__ = ["extras_installed", "keys_present", "versions"]

DISTRIBUTION = "agex-py"
_PACKAGES = ("pydantic", "pydantic-core", "pydantic-ai-slim", "monkeyfs", "termish")
"""Beside Python, the libraries whose versions matter most."""
_SETTINGS = ("AGEX_MODEL", "AGEX_LOCAL_MODEL")
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[(?P<extras>[^\]]*)\])?")
_EXTRA = re.compile(r"""extra\s*==\s*['"](?P<extra>[\w.-]+)['"]""")


def versions() -> dict[str, str | None]:
    """Return the versions of agex, of Python and of what agex stands on, and the system's; None for none."""
    return {
        "agex": _version(DISTRIBUTION),
        "python": f"{platform.python_version()} ({sys.implementation.name})",
        **{name: _version(name) for name in _PACKAGES},
        "platform": platform.platform(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def extras_installed() -> list[str]:
    """Return the extras of agex whose requirements are installed, in the order of their declaration."""
    try:
        own = metadata.metadata(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return []
    needs = _needs(DISTRIBUTION)
    return [name for name in own.get_all("Provides-Extra") or () if _is_installed(name, needs)]


def keys_present() -> list[str]:
    """Return the names, and nothing else, of the variables that choose a model and are set."""
    return [name for name in (*_SETTINGS, *PROVIDERS) if os.environ.get(name, "").strip()]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _needs(distribution: str) -> dict[str, list[tuple[str, list[str]]]]:
    """Return the requirements of each extra of a distribution: names, and the extras that they ask for."""
    found: dict[str, list[tuple[str, list[str]]]] = {}
    for text in metadata.requires(distribution) or ():
        said, _, marker = text.partition(";")
        extra, requirement = _EXTRA.search(marker), _REQUIREMENT.match(said.strip())
        if extra is not None and requirement is not None:
            wanted = [one.strip() for one in (requirement["extras"] or "").split(",") if one.strip()]
            found.setdefault(extra["extra"], []).append((requirement["name"], wanted))
    return found


def _is_installed(extra: str, needs: dict[str, list[tuple[str, list[str]]]]) -> bool:
    return all(_is_there(name, wanted, needs) for name, wanted in needs.get(extra, ()))


def _is_there(name: str, wanted: list[str], own: dict[str, list[tuple[str, list[str]]]]) -> bool:
    """Return whether a distribution is installed, and the extras of it that are asked for."""
    if _version(name) is None:
        return False
    needs = own if name == DISTRIBUTION else _needs(name)
    return all(_is_installed(extra, needs) for extra in wanted)
