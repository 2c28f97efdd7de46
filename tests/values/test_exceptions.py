"""Exceptions come back with what they hold in C, without their constructors."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest

from agex.errors import StateCorrupt
from agex.values import Allow, Group, NotKept, decode, encode
from agex.values.adapters import exceptions
from agex.values.adapters import stdlib as plain
from agex.values.code.reconstructor import Builder


def again(value: Any, *registered: type) -> Any:
    allow = Allow(registered)
    (group,) = encode({"x": value}, allow=allow)
    assert group.lost == {}
    return decode(group, allow=allow)["x"]


def raised(code: str) -> BaseException:
    try:
        exec(code, {})
    except BaseException as error:  # noqa: BLE001 - whatever the code raises
        return error
    raise AssertionError("it raised nothing")


FIELDS = {
    "an import": (ImportError("m", name="n", path="p"), ("name", "path", "msg")),
    "a name": (raised("zzz"), ("name",)),
    "an attribute": (raised("(1).zzz"), ("name",)),
    "an exit": (SystemExit(3), ("code",)),
    "an exit whose code was changed": (raised("e = SystemExit(3)\ne.code = 4\nraise e"), ("code",)),
    "the end of a generator": (StopIteration([4]), ("value",)),
    "two files": (OSError(2, "no", "f", None, "g"), ("errno", "strerror", "filename", "filename2")),
    "what was written": (BlockingIOError(11, "later", 7), ("characters_written",)),
    "arguments that were changed": (raised("e = OSError(5)\ne.args = (2, 'no')\nraise e"), ("errno",)),
    "syntax": (raised("1 +\n"), ("lineno", "offset", "text", "end_lineno")),
    "a text": (raised("'\\ud800'.encode()"), ("encoding", "object", "start", "end", "reason")),
    "bytes": (raised("b'a\\xff'.decode()"), ("encoding", "object", "start", "end", "reason")),
    "a translation": (UnicodeTranslateError("abc", 1, 2, "bad"), ("object", "start", "end", "reason")),
    "a group": (ExceptionGroup("m", [ValueError(1), OSError(2, "no")]), ("message",)),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_builtin_exception_keeps_its_fields(name: str) -> None:
    error, fields = FIELDS[name]
    got = again(error)
    assert type(got) is type(error)
    assert (got.args, str(got)) == (error.args, str(error)) or name == "a group"
    assert [getattr(got, each) for each in fields] == [getattr(error, each) for each in fields]


SUBCLASSES = {
    "OSError": ("E(2, 'no', 'f')", "x.args, x.filename, str(x)", ((2, "no"), "f", "[Errno 2] no: 'f'")),
    "OSError, one with a constructor": ("F('f')", "x.args, x.errno, x.path", ((2, "no"), 2, "f")),
    "ImportError": ("E('m', name='n')", "x.name, x.msg", ("n", "m")),
    "SystemExit": ("E(3)", "x.code, x.args", (3, (3,))),
    "StopIteration": ("E(3)", "x.value, x.args", (3, (3,))),
    "ExceptionGroup": (
        "E('m', [ValueError(1), E('n', [KeyError(2)])])",
        "x.message, x.exceptions[0].args, type(x.exceptions[1]) is E, x.exceptions[1].exceptions[0].args",
        ("m", (1,), True, (2,)),
    ),
    "BaseExceptionGroup": ("E('m', [ValueError(1)])", "x.exceptions[0].args", (1,)),
    "UnicodeDecodeError": (
        "E('utf8', b'abc', 1, 2, 'bad')",
        "str(x), x.start",
        ("'utf8' codec can't decode byte 0x62 in position 1: bad", 1),
    ),
    "SyntaxError": ("E('m', ('f', 1, 2, 't'))", "str(x), x.lineno", ("m (f, line 1)", 1)),
    "KeyError": ("E('k')", "str(x), x.args", ("'k'", ("k",))),
    "ValueError": ("E('k', [1])", "x.args", ("k", [1])),
    "OSError, LookupError": ("E(2, 'no')", "x.errno", 2),
}  # fmt: skip


@pytest.mark.parametrize("name", SUBCLASSES)
def test_an_exception_of_the_guest_keeps_what_its_base_holds(name: str, moved) -> None:
    made, asked, answer = SUBCLASSES[name]
    constructor = (
        "    def __init__(self, path):\n        super().__init__(2, 'no')\n        self.path = path\n"
    )
    bases = name.partition(", one")[0]
    program = f"class E({bases}): pass\nclass F(OSError):\n{constructor}x = {made}"
    assert moved(program).run(f"got = {asked}")["got"] == answer


class Missing(OSError):
    """An exception of the host, whose constructor takes something else."""

    def __init__(self, path: str) -> None:
        super().__init__(2, "no")
        self.path = path
        RAN.append(path)


RAN: list[str] = []


def test_an_exception_of_the_host_comes_back_without_its_constructor() -> None:
    error = Missing("f")
    RAN.clear()
    got = again(error, Missing)
    assert (type(got), got.args, got.errno, got.path, RAN) == (Missing, (2, "no"), 2, "f", [])


def test_one_that_was_kept_by_a_call_still_comes_back_and_is_not_called() -> None:
    name = f"{Missing.__module__}.{Missing.__qualname__}"
    builder = Builder(Allow([Missing]), None, lambda *_: {})
    RAN.clear()
    made = builder.construct(name, (2, "no"), False)
    builder.fill_constructed(made, {"path": "f"})
    assert (type(made), made.args, made.path, RAN) == (Missing, (2, "no"), "f", [])


CHAINS = {
    "a cause": ("1 / 0", "raise ValueError(3) from e", "ZeroDivisionError", "ZeroDivisionError", True),
    "a context": ("1 / 0", "raise ValueError(3)", None, "ZeroDivisionError", False),
    "a suppressed context": ("1 / 0", "raise ValueError(3) from None", None, "ZeroDivisionError", True),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_an_exception_keeps_what_it_was_raised_from(name: str) -> None:
    first, second, cause, context, suppressed = CHAINS[name]
    got = again(raised(f"try:\n    {first}\nexcept Exception as e:\n    {second}"))
    names = [each and type(each).__name__ for each in (got.__cause__, got.__context__)]
    assert (names, got.__suppress_context__) == ([cause, context], suppressed)


def test_exceptions_that_were_raised_from_each_other_come_back() -> None:
    one, other = ValueError(1), KeyError(2)
    one.__cause__, other.__cause__ = other, one
    one.args = (one,)
    got = again(one)
    assert got.__cause__.__cause__ is got
    assert got.args[0] is got


def test_exceptions_of_an_endless_retry_are_cut_off() -> None:
    error: BaseException = ValueError(0)
    for number in range(1, 2000):
        following = ValueError(number)
        following.__context__ = error
        error = following
    got = again(error)
    assert (got.args, got.__context__) == ((1999,), None)


def test_an_error_of_the_host_behind_one_of_the_guest_is_left_out() -> None:
    error = ValueError(1)
    error.__context__ = StateCorrupt("internal")
    assert again(error).__context__ is None


def test_a_group_with_an_exception_that_is_lost_is_lost_and_what_is_beside_it_is_not() -> None:
    group_of = ExceptionGroup("m", [StateCorrupt("internal")])
    (group,) = encode({"x": [1, group_of]}, allow=Allow())
    assert group.lost
    one, got = decode(group, allow=Allow())["x"]
    assert (one, type(got)) == (1, NotKept)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("UnicodeDecodeError", {"texts": ("utf8", 5, 0, 1, "bad")}),
        ("UnicodeDecodeError", {"texts": (5, b"a", 0, 1, "bad")}),
        ("UnicodeDecodeError", {"object": 5, "texts": ()}),
        ("BlockingIOError", {"characters_written": "x"}),
        ("ValueError", {"args": [1]}),
        ("ValueError", {"__cause__": 5}),
        ("ValueError", {"__context__": "x"}),
    ],
)
def test_a_field_of_a_type_that_the_interpreter_does_not_give_it_is_corrupt(name: str, fields: Any) -> None:
    class Forged:
        def __init__(self, target: Any = None) -> None:
            self.target = target

        def __reduce__(self) -> Any:
            state = (None, fields)
            return exceptions.make_blank_exception, (name, ()), state, None, None, exceptions.fill_exception

    file = io.BytesIO()
    pickle.Pickler(file, 5).dump(((Forged(),), ()))
    with pytest.raises(StateCorrupt):
        decode(Group(names=("x",), stream=file.getvalue()), allow=Allow())


def test_an_exception_that_was_kept_without_its_fields_still_comes_back() -> None:
    assert plain.make_exception("OSError", (2, "no", "f")).filename == "f"
