"""What this room asks of whoever runs guest code."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, Protocol

from agex.errors import SandboxError

__all__ = ["CodeElsewhere", "GuestCode"]


class GuestCode(Protocol):
    """Guest functions and classes: which they are, their source, and how they are made again."""

    def is_guest_function(self, value: object) -> bool:
        """Return whether *value* is a Python function that the guest wrote."""
        ...

    def is_guest_class(self, value: type) -> bool:
        """Return whether *value* is a class that the guest made."""
        ...

    def source(self, code: CodeType) -> str | None:
        """Return the text of the program that *code* is part of; None for an unknown one."""
        ...

    def class_body(self, value: type) -> FunctionType | None:
        """Return the function that ``__build_class__`` was given for a guest class; None if unknown.

        Its code says where the class statement is, its closure what the statement captured. A decorator
        may have made another class of the statement's (``dataclass(slots=True)`` does): then that of the
        statement's class.
        """
        ...

    def class_header(self, value: type) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Return what ``__build_class__`` was given beside the body: bases and keywords; None if unknown."""
        ...

    def class_number(self, value: type) -> int:
        """Return the place of a class in the order in which class statements began; -1 for any other."""
        ...

    def home_of(self, value: FunctionType | type) -> str | None:
        """Return where a function or class of the guest stands in a module; None where it stands in none."""
        ...

    def at_home(self, home: str) -> Any:
        """Return what stands now where `home_of` said; None where that is nothing of the guest's."""
        ...

    def may_store(self, value: type, name: str) -> bool:
        """Return whether the guest's own code may give a class an attribute of that name."""
        ...

    def altered(self, value: type, *, dressed: bool) -> frozenset[str]:
        """Return the names of attributes that were set or deleted on a class since its statement ended.

        With *dressed* also those that a decorator of the statement set or deleted.
        """
        ...

    def written(self, value: object) -> object:
        """Return what the guest wrote, where *value* is a guard that stands in its place in a class."""
        ...

    def store(self, value: type, name: str, attribute: object) -> None:
        """Return a guest class an attribute, as its code did after the class statement."""
        ...

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        """Run *source* under the guards, with *namespace* as its globals, and return what it bound to *name*.

        It adds to the namespace what guest code needs there (``__builtins__``, ``__name__``), and
        `source` knows the program's code from now on. A function or class made by it is the guest's.
        Whatever the code raises is raised.
        """
        ...

    def host_name(self, value: object) -> str | None:
        """Return the name under which guest code can import or use this object of the host, or None.

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
        """Return of what and by which name guest code reads a host method; None for anything else."""
        ...

    def method(self, owner: Any, name: str) -> Any:
        """Return the method that `method_of` named.

        Raises:
            KeyError: there is none now that guest code may read.
        """
        ...


class CodeElsewhere:
    """Finds host objects, and makes no code: it may run only at the level it comes from.

    Args:
        guest: of this process.
        origin: the level that the code comes from.
    """

    def __init__(self, guest: GuestCode, origin: str) -> None:
        self._guest = guest
        self._origin = origin

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
        return None

    def may_store(self, value: type, name: str) -> bool:
        return self._guest.may_store(value, name)

    def altered(self, value: type, *, dressed: bool) -> frozenset[str]:
        return self._guest.altered(value, dressed=dressed)

    def written(self, value: object) -> object:
        return self._guest.written(value)

    def store(self, value: type, name: str, attribute: object) -> None:
        self._guest.store(value, name, attribute)

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        raise SandboxError(f"it is code from isolation={self._origin!r} and can be used only there")

    def host_name(self, value: object) -> str | None:
        return self._guest.host_name(value)

    def host_object(self, name: str) -> Any:
        return self._guest.host_object(name)

    def method_of(self, value: object) -> tuple[Any, str] | None:
        return self._guest.method_of(value)

    def method(self, owner: Any, name: str) -> Any:
        return self._guest.method(owner, name)
