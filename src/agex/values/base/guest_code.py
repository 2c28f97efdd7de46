"""Interface to the sandbox that runs guest code: which code it made, and how to make it again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, Protocol

from agex.errors import SandboxError

__all__ = ["CodeElsewhere", "ForwardedCode", "GuestCode", "SealingCode", "sealing"]


class GuestCode(Protocol):
    """The guest functions and classes of a session, their source, and how they are made again."""

    def is_guest_function(self, value: object) -> bool:
        """Return whether guest code defined a Python function."""
        ...

    def is_guest_class(self, value: type) -> bool:
        """Return whether guest code made a class."""
        ...

    def source(self, code: CodeType) -> str | None:
        """Return the text of the program that *code* is part of; None for an unknown one."""
        ...

    def class_body(self, value: type) -> FunctionType | None:
        """Return the function that ``__build_class__`` got for a guest class; None if unknown.

        Its code shows where the class statement is, its closure what the statement captured. A decorator
        may have replaced the class (``dataclass(slots=True)`` does): then the function is that of the class
        that the statement made.
        """
        ...

    def class_header(self, value: type) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Return the bases and keywords that ``__build_class__`` got; None if unknown."""
        ...

    def class_number(self, value: type) -> int:
        """Return the place of a class in the order in which class statements began; -1 for any other."""
        ...

    def home_of(self, value: FunctionType | type) -> str | None:
        """Return where a guest function or class stands in a module; None where it stands in none."""
        ...

    def at_home(self, home: str) -> Any:
        """Return the guest function or class that stands now at a home; None where there is none."""
        ...

    def may_store(self, value: type, name: str) -> bool:
        """Return whether guest code may set an attribute of that name on a class."""
        ...

    def altered(self, value: type, *, dressed: bool) -> frozenset[str]:
        """Return the names of attributes that were set or deleted on a class since its statement ended.

        With *dressed* also those that a decorator of the statement set or deleted.
        """
        ...

    def written(self, value: object) -> object:
        """Return the guest function behind a guard in a class; any other value as it is."""
        ...

    def store(self, value: type, name: str, attribute: object) -> None:
        """Set an attribute on a guest class, as guest code did after the class statement."""
        ...

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        """Run *source* under the guards over the globals *namespace*, and return its variable *name*.

        It adds the names that guest code needs there (``__builtins__``, ``__name__``), and
        `source` knows the program's code from now on. Functions and classes that it makes count as guest
        code. Errors of the code pass through.
        """
        ...

    def host_name(self, value: object) -> str | None:
        """Return the name under which guest code can import or use a host object, or None.

        For modules, registered functions, classes and live objects, and builtins.
        """
        ...

    def host_object(self, name: str) -> Any:
        """Return the object that `host_name` named.

        Raises:
            KeyError: nothing is registered under that name now.
        """
        ...

    def method_of(self, value: object) -> tuple[Any, str] | None:
        """Return the owner and the name by which guest code reads a host method; None for anything else."""
        ...

    def method(self, owner: Any, name: str) -> Any:
        """Return the method that `method_of` named.

        Raises:
            KeyError: there is none now that guest code may read.
        """
        ...


class SealingCode(ABC):
    """Guest code of a worker that also keeps objects of types that only a worker has: as sealed bytes.

    A host never opens a seal. A worker opens those that came from a worker of its own level.
    """

    @abstractmethod
    def sealed(self, found: Sequence[Any]) -> tuple[bytes, Mapping[int, str]]:
        """Return objects as bytes.

        Returns:
            The bytes; and why single objects are not in them, by their place in *found*.
        """
        ...

    @abstractmethod
    def unsealed(self, sealed: bytes) -> Sequence[Any]:
        """Return the objects in the bytes, at their places; None for one that is not in them.

        Raises:
            Exception: they cannot be loaded.
        """
        ...


def sealing(guest: object) -> SealingCode | None:
    """Return guest code that seals objects; None for any other."""
    return guest if isinstance(guest, SealingCode) else None


class ForwardedCode:
    """Guest code that answers as another does; base of those that differ in a few answers.

    Args:
        guest: the other.
    """

    def __init__(self, guest: GuestCode) -> None:
        self._guest = guest

    def is_guest_function(self, value: object) -> bool:
        return self._guest.is_guest_function(value)

    def is_guest_class(self, value: type) -> bool:
        return self._guest.is_guest_class(value)

    def source(self, code: CodeType) -> str | None:
        return self._guest.source(code)

    def class_body(self, value: type) -> FunctionType | None:
        return self._guest.class_body(value)

    def class_header(self, value: type) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        return self._guest.class_header(value)

    def class_number(self, value: type) -> int:
        return self._guest.class_number(value)

    def home_of(self, value: FunctionType | type) -> str | None:
        return self._guest.home_of(value)

    def at_home(self, home: str) -> Any:
        return self._guest.at_home(home)

    def may_store(self, value: type, name: str) -> bool:
        return self._guest.may_store(value, name)

    def altered(self, value: type, *, dressed: bool) -> frozenset[str]:
        return self._guest.altered(value, dressed=dressed)

    def written(self, value: object) -> object:
        return self._guest.written(value)

    def store(self, value: type, name: str, attribute: object) -> None:
        self._guest.store(value, name, attribute)

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        return self._guest.rebuild(source, name, namespace)

    def host_name(self, value: object) -> str | None:
        return self._guest.host_name(value)

    def host_object(self, name: str) -> Any:
        return self._guest.host_object(name)

    def method_of(self, value: object) -> tuple[Any, str] | None:
        return self._guest.method_of(value)

    def method(self, owner: Any, name: str) -> Any:
        return self._guest.method(owner, name)


class CodeElsewhere(ForwardedCode):
    """Finds host objects, and makes no code: it may run only at the level it comes from.

    Args:
        guest: the code of this process.
        origin: the level that the code comes from.
    """

    def __init__(self, guest: GuestCode, origin: str) -> None:
        super().__init__(guest)
        self._origin = origin

    def at_home(self, home: str) -> Any:
        return None

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        raise SandboxError(f"it is code from isolation={self._origin!r} and can be used only there")
