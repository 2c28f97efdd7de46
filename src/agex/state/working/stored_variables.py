"""The variables of a commit as they are stored: by key, and read when they are asked for.

Variables that share objects are one group: its payload is under the key of its first name, the
others point there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agex import values
from agex.errors import StateCorrupt, UnpicklableVariableError
from agex.state.commits.journal import Journal

__all__ = [
    "CACHE", "ELSEWHERE", "HERE", "IMPORT", "Codec", "Stored", "Unreadable", "is_import", "key_of", "members",
    "name_of", "names_at", "variables_at",
]  # fmt: skip

CACHE = "cache"
"""The name of the state's ``cache`` among the variables."""

IMPORT = "import "
"""How the name begins under which it is kept what to import for a variable: it is none by itself."""

_PREFIX = "v/"
HERE, ELSEWHERE = b"=", b">"
"""How a payload begins that holds a group, and one that names the variable which does."""


def key_of(name: str) -> str:
    """Return the key of a variable."""
    return _PREFIX + name


def name_of(key: str) -> str | None:
    """Return the variable that a key is of; None for a key of something else."""
    return key.removeprefix(_PREFIX) if key.startswith(_PREFIX) else None


def is_import(name: str) -> bool:
    """Return whether a name stands for an import, not for a variable."""
    return name.startswith(IMPORT)


def members(payload: bytes | None) -> tuple[str, ...]:
    """Return the variables of the group that a payload holds; none where it holds no group."""
    if payload is None or payload[:1] != HERE:
        return ()
    return values.read_recipe(payload[1:]).names


def variables_at(journal: Journal, commit: str | None) -> list[str]:
    """Return the names of all variables at a commit, sorted; the cache and imports are none."""
    names = names_at(journal, commit, _PREFIX)
    return [name for name in names if name != CACHE and not is_import(name)]


def names_at(journal: Journal, commit: str | None, prefix: str) -> list[str]:
    """Return the keys at a commit that begin with a prefix, without it."""
    keys = [] if commit is None else journal.keys(commit, prefix)
    return [key.removeprefix(prefix) for key in keys]


@dataclass
class Codec:
    """The settings of encoding and decoding: allowed classes, and the codec of guest code."""

    allow: values.Allow
    guest: values.GuestCode | None = None


class Stored:
    """The variables of one commit, decoded when they are asked for."""

    def __init__(self, journal: Journal, commit: str, codec: Codec) -> None:
        self.journal = journal
        self.commit = commit
        self.codec = codec

    def home(self, name: str) -> tuple[str, bytes] | None:
        """Return the variable whose key holds the group that *name* is in, and the payload.

        None where there is no such variable.
        """
        payload = self._read(name)
        if payload is not None and payload[:1] == ELSEWHERE:
            name = payload[1:].decode()
            payload = self._read(name)
            if payload is None:
                raise StateCorrupt(f"What another variable is kept together with, {name!r}, is gone")
        if payload is None:
            return None
        if payload[:1] != HERE:
            raise StateCorrupt(f"The payload of variable {name!r} is of no known kind")
        return name, payload[1:]

    def holds(self, name: str) -> bool:
        """Return whether anything is stored of a variable, be it damaged."""
        try:
            return self._read(name) is not None
        except StateCorrupt:
            return True

    def recipe(self, name: str) -> values.Recipe | None:
        """Return how the group is put together that a variable is in; None where there is none."""
        found = self.found(name)
        return None if found is None else found[1]

    def found(self, name: str) -> tuple[str, values.Recipe] | None:
        """Return the variable whose key holds the group that *name* is in, and its recipe."""
        found = self.home(name)
        if found is None:
            return None
        home, recipe = found[0], values.read_recipe(found[1])
        if name not in recipe.names:
            raise StateCorrupt(f"The payload of variable {name!r} does not hold it")
        return home, recipe

    def belonging(self, home: str, recipe: values.Recipe) -> list[str]:
        """Return the variables that a group, under the key of *home*, is read for.

        It may hold more: of a group that could not be read, some were deleted or bound anew since.
        """
        here = ELSEWHERE + home.encode()
        return [one for one in recipe.names if one == home or self._read(one) == here]

    def group(self, name: str, recipe: values.Recipe) -> tuple[values.Group, dict[str, Any]]:
        """Return the group of a variable as it is stored, and as fresh objects by name.

        Raises:
            StateCorrupt: its bytes are damaged.
            Unreadable: they are whole, for each chunk is checked, but no objects are made of them here.
        """
        group = values.put_together(recipe, self.journal.chunk)
        try:
            return group, values.decode(group, allow=self.codec.allow, guest=self.codec.guest)
        except StateCorrupt as error:
            home, _ = self.home(name) or (name, b"")
            raise Unreadable(name, self.belonging(home, recipe), error) from error

    def _read(self, name: str) -> bytes | None:
        return self.journal.read(self.commit, key_of(name))


class Unreadable(UnpicklableVariableError):
    """A variable is stored, but its value cannot be decoded.

    Guest code may raise when it is run again, a class may not be registered here, a library may
    be missing. What is stored stays as it is until somebody gives the name another value, or deletes it.

    Attributes:
        name: the variable.
        names: those that are stored as one with it, itself among them.
        reason: what was raised.
    """

    def __init__(self, name: str, names: Iterable[str], error: Exception) -> None:
        self.name = name
        self.names = tuple(names)
        self.reason = _reason(error)
        others = [one for one in self.names if one != name]
        together = f" It is stored together with {', '.join(others)}." if others else ""
        super().__init__(
            f"Variable {name!r} is stored, but cannot be read again: {self.reason}.{together}\n\n"
            "Solutions:\n"
            "  1. Read it where what it needs is registered and installed\n"
            f"  2. Give it up: del state[{name!r}], or give it another value"
        )

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return UnpicklableVariableError, (str(self),)

    def marker(self, name: str, hint: str = "") -> values.NotKept:
        """Return the marker that a task gets in place of one of the variables."""
        reason = f"it is stored, but cannot be read again: {self.reason}{hint}"
        return values.NotKept(name, "unreadable value", reason)


def _reason(error: Exception) -> str:
    """Return the cause that the decoder met, without its claim of damaged bytes: they are intact."""
    cause = error.__cause__
    if cause is None or isinstance(cause, ModuleNotFoundError):
        return str(error)
    return f"{type(cause).__name__}: {cause}"
