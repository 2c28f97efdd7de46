"""Values on a tape: plain data as JSON, any other by the codec of the state's variables.

A live object has a number, and a registered thing its name. So a value has two sides: to the host belong the
objects themselves, to guest code their stand-ins. Guest code is never on a tape.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agex import values
from agex.agent.tape.records import ValueRecord
from agex.errors import SandboxError, StateCorrupt, TapeError
from agex.isolation.rpc.host_objects import OPERATORS, HostExports
from agex.isolation.rpc.host_proxies import Stubs
from agex.sandbox import KeptCode, Sandbox, Session
from agex.sandbox.host_names import name_of, named

__all__ = ["Encoded", "HostSide", "TapeCodec", "described"]

_NAME = "value"
_DEEPEST = 50
_LARGEST = 2**63

Encoded = tuple[ValueRecord, bool]
"""A value as it is on a tape, and whether live objects are in it."""


class _About(BaseModel):
    """The description of a live object, of `agex.isolation.rpc.host_objects.describe`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: int = Field(default=0, ge=0)
    kind: str = Field(pattern="^(function|object|class)$")
    name: str = Field(max_length=200)
    module: str = Field(default="", max_length=500)
    doc: str = Field(default="", max_length=10_000)
    sig: Any = None
    members: list[str] = Field(default_factory=list, max_length=10_000)
    methods: dict[str, dict[str, Any]] = Field(default_factory=dict, max_length=10_000)
    operators: list[str] = Field(default_factory=list, max_length=len(OPERATORS))
    is_async: bool = Field(default=False, alias="async")


def described(found: Any) -> dict[str, Any]:
    """Return the description of a live object that a tape has.

    Raises:
        TapeError: it is none.
    """
    try:
        about = _About.model_validate(found)
    except ValidationError as error:
        raise TapeError(f"the tape describes an object wrongly: {error}") from None
    names = [about.name, *about.members, *about.methods]
    if not all(name.isidentifier() and not name.startswith("__") for name in names):
        raise TapeError("the tape describes an object wrongly: a name of it is none")
    if not OPERATORS.issuperset(about.operators):
        raise TapeError("the tape describes an object wrongly: it has unknown operators")
    for method in about.methods.values():
        if method.keys() != {"doc", "sig"} or type(method["doc"]) is not str:
            raise TapeError("the tape describes an object wrongly: a method of it is none")
    return about.model_dump(by_alias=True)


class _Side(KeptCode):
    """The base of both sides: guest code stays out."""

    def __init__(self, sandbox: Sandbox, session: Session) -> None:
        super().__init__(sandbox, session)
        self.session = session
        self.has_objects = False

    def is_guest_function(self, value: object) -> bool:
        return False

    def is_guest_class(self, value: type) -> bool:
        return False

    def rebuild(self, source: str, name: str, namespace: dict[str, Any]) -> Any:
        raise SandboxError("guest code is not run from a tape")


class GuestSide(_Side):
    """Values as guest code has them: stand-ins for the objects of the host."""

    def __init__(self, sandbox: Sandbox, session: Session, stubs: Stubs, granted: dict[str, Any]) -> None:
        super().__init__(sandbox, session)
        self._stubs = stubs
        self._granted = granted

    def host_name(self, value: object) -> str | None:
        which = self._stubs.of(value)
        if which is not None:
            self.has_objects = True
            return f"n:{which}" if isinstance(which, str) else "h:" + json.dumps({"id": which})
        return name_of(self.session, value)

    def host_object(self, name: str) -> Any:
        kind, _, rest = name.partition(":")
        if kind == "h":
            self.has_objects = True
            about = described(_loaded(rest))
            return self._stubs.get(about["id"], about)
        if kind == "n":
            self.has_objects = True
            return self._granted[rest]
        return named(self.session, name)


class HostSide(HostExports):
    """Values as the host has them; exports the objects that guest code may use."""

    has_objects = False

    def is_guest_function(self, value: object) -> bool:
        return False

    def is_guest_class(self, value: type) -> bool:
        return False

    def host_name(self, value: object) -> str | None:
        if KeptCode.is_guest_function(self, value):
            return None
        found = super().host_name(value)
        self.has_objects = self.has_objects or (found or "").startswith(("h:", "n:"))
        return found


@dataclass(frozen=True)
class _Name:
    """Stands for an object, where only its identity is compared."""

    text: str

    def __repr__(self) -> str:
        return f"<{self.text}>"


class _Names(_Side):
    """Values whose objects are their names, to be compared."""

    def host_object(self, name: str) -> Any:
        kind, _, rest = name.partition(":")
        return _Name(f"h:{_loaded(rest).get('id')}" if kind == "h" else name)


class TapeCodec:
    """Encodes and decodes the values of one run.

    Args:
        sandbox: of the task: its policy says which names there are.
        session: of that sandbox, in which no guest code runs.
        allow: classes whose instances are kept by their fields.
        stubs: of the live objects.
        granted: the stand-ins of registered things, by name.
    """

    def __init__(
        self, sandbox: Sandbox, session: Session, allow: values.Allow, stubs: Stubs, granted: dict[str, Any]
    ) -> None:
        self._sandbox = sandbox
        self._session = session
        self._allow = allow
        self._stubs = stubs
        self._granted = granted

    def of_guest(self, value: Any, what: str) -> Encoded:
        """Encode a value as guest code has it.

        Raises:
            TapeError: a part of it cannot be kept.
        """
        return self.encoded(value, self._guest_side(), what)

    def encoded(self, value: Any, side: GuestSide | HostSide, what: str) -> Encoded:
        """Encode a value of one side."""
        if _is_plain(value):
            return ValueRecord(plain=_copied(value)), False  # the value may change after this
        side.has_objects = False
        groups = values.encode({_NAME: value}, allow=self._allow, guest=side)
        lost = groups[0].lost.get(_NAME, ()) if len(groups) == 1 else ()
        if len(groups) != 1 or lost:
            path = f", at {lost[0].path.removeprefix(_NAME)}" if lost and lost[0].path != _NAME else ""
            why = f"{lost[0].type}{path}: {lost[0].reason}" if lost else "it is none of the known kinds"
            raise TapeError(f"{what} cannot be kept on a tape ({why}).")
        (group,) = groups
        record = ValueRecord(stream=bytes(group.stream), buffers=tuple(map(bytes, group.buffers)))
        return record, side.has_objects

    def for_guest(self, record: ValueRecord) -> Any:
        """Decode a value for guest code.

        Raises:
            TapeError: it is none.
        """
        return self.decoded(record, self._guest_side())

    def has_objects(self, record: ValueRecord) -> bool:
        """Return whether live objects are in a value."""
        side = self._guest_side()
        self.decoded(record, side)
        return side.has_objects

    def by_names(self, record: ValueRecord) -> Any:
        """Decode a value to be compared: its objects are their names."""
        return self.decoded(record, _Names(self._sandbox, self._session))

    def decoded(self, record: ValueRecord, side: values.GuestCode) -> Any:
        """Decode a value of one side."""
        if record.stream is None:
            return _copied(record.plain)
        group = values.Group(
            names=(_NAME,), stream=record.stream, buffers=tuple(map(_writable, record.buffers)), origin="tape"
        )
        try:
            found = values.decode(group, allow=self._allow, guest=side)[_NAME]
        except (StateCorrupt, KeyError) as error:
            raise TapeError(f"the tape holds a value that cannot be loaded: {error}") from error
        if type(found) is values.NotKept:
            raise TapeError("the tape holds a value that cannot be loaded here: it names what is not granted")
        return found

    def plain_side(self) -> values.GuestCode:
        """Return a side without live objects."""
        return _Side(self._sandbox, self._session)

    def _guest_side(self) -> GuestSide:
        return GuestSide(self._sandbox, self._session, self._stubs, self._granted)


def _writable(data: bytes) -> memoryview:
    return memoryview(bytearray(data))


def _is_plain(value: Any, depth: int = _DEEPEST) -> bool:
    """Return whether a value comes out of JSON as it is."""
    kind = type(value)
    if kind is float:
        return bool(math.isfinite(value))
    if kind is int:
        return bool(-_LARGEST <= value < _LARGEST)
    if kind is str:
        return _is_text(value)
    if kind in (bool, type(None)):
        return True
    if not depth:
        return False
    if kind is list:
        return all(_is_plain(each, depth - 1) for each in value)
    if kind is dict:
        names_are_texts = all(type(name) is str and _is_text(name) for name in value)
        return names_are_texts and all(_is_plain(each, depth - 1) for each in value.values())
    return False


def _copied(value: Any) -> Any:
    """Return a copy of plain data."""
    if type(value) is list:
        return [_copied(each) for each in value]
    return {name: _copied(each) for name, each in value.items()} if type(value) is dict else value


def _is_text(text: Any) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair: JSON has no such text
        return False
    return True


def _loaded(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if type(found) is not dict:
        raise TapeError("the tape describes an object wrongly")
    return found
