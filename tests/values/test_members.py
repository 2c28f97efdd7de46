"""Members of enumerations come back worth what they were."""

from __future__ import annotations

import enum
import textwrap
from typing import Any

import pytest

from agex.values import Allow, NotKept, decode, encode
from agex.values.code.reconstructor import Builder

ENUMS = {
    "bits without a name": (
        """
            from enum import IntFlag
            class P(IntFlag):
              A=1
              B=2
            x=P(9)
            y=P(8)
            z=P(0)
        """,
        "int(x), int(y), int(z), type(y) is P",
        (9, 8, 0, True),
    ),
    "the complement": (
        """
            from enum import IntFlag
            class P(IntFlag):
              A=1
              B=2
            x=~P.A
            y=P.A|P.B
        """,
        "int(x) == int(~P.A), y is P.A|P.B",
        (True, True),
    ),
    "no flag": (
        """
            from enum import Flag
            class P(Flag):
              A=1
              B=2
            x=P(0)
        """,
        "x is P(0), x.value",
        (True, 0),
    ),
    "a flag of several": (
        """
            from enum import Flag
            class P(Flag):
              A=1
              B=2
              AB=3
            x=P.A|P.B
        """,
        "x is P.AB",
        True,
    ),
    "values from a counter": (
        """
            n=[0]
            def nxt():
              n[0]+=1
              return n[0]*2
            from enum import Enum
            class C(Enum):
              A=nxt()
              B=nxt()
            x=C.B
        """,
        "C.A.value, C.B.value, x.value, C(4) is C.B, x is C.B",
        (2, 4, 4, True, True),
    ),
    "values that were changed": (
        """
            from enum import Enum
            class C(Enum):
              A=1
              B=[2]
            x=C.A
            C.A.note='hi'
            C.B.value.append(3)
        """,
        "x.note, C.B.value",
        ("hi", [2, 3]),
    ),
    "values of a constructor": (
        """
            from enum import Enum
            class C(Enum):
              A=(1, 2)
              B=(3, 4)
              def __init__(self, a, b): self.sum = a + b
            x=C.B
        """,
        "x.sum, x.value, C((1, 2)) is C.A",
        (7, (3, 4), True),
    ),
    "a sentinel": (
        """
            from enum import Enum
            class C(Enum):
              A=object()
            x=C.A
        """,
        "x is C.A",
        True,
    ),
    "another name": (
        """
            from enum import Enum
            class C(Enum):
              A=1
              B=1
            x=C.B
        """,
        "x is C.A, C.B is x",
        (True, True),
    ),
    "a value shared with a variable": (
        """
            from enum import Enum
            r=[1]
            class C(Enum):
              A=r
            r.append(2)
        """,
        "C.A.value is r, r",
        (True, [1, 2]),
    ),
    "numbers": (
        """
            from enum import IntEnum
            class C(IntEnum):
              A=1
              B=2
            x=C.B
        """,
        "x + 1, x is C.B",
        (3, True),
    ),
    "an instance of the guest's": (
        """
            from enum import Enum
            class V:
              def __init__(self): self.n=3
            class C(Enum):
              A=V()
            x=C.A
            x.value.n=4
        """,
        "x.value.n, type(x.value) is V",
        (4, True),
    ),
}


@pytest.mark.parametrize("name", ENUMS)
def test_a_member_is_worth_what_it_was(name: str, moved, make_guest) -> None:
    program, asked, answer = ENUMS[name]
    second = moved(textwrap.dedent(program))
    assert second.run(f"got = {asked}")["got"] == answer
    third = make_guest()
    third.session.globals.update(third.load(second.groups()))
    assert third.run(f"got = {asked}")["got"] == answer


@pytest.mark.parametrize("base", ["IntEnum", "Flag"])
def test_a_member_that_cannot_be_given_its_value_is_lost_and_not_worth_another(base: str, moved) -> None:
    program = f"""
        n = [0]
        def nxt():
            n[0] += 1
            return 2 ** n[0]
        from enum import {base}
        class C({base}):
            A = nxt()
        x = C.A
        beside = [C, 5]
    """
    second = moved(textwrap.dedent(program))
    assert type(second.session.globals["C"]) is type(second.session.globals["x"]) is NotKept
    assert second.run("got = beside[1]")["got"] == 5


class Access(enum.IntFlag):
    """Flags of the host."""

    READ = 1
    WRITE = 2


class Strict(enum.Flag, boundary=enum.STRICT):
    """Flags of the host, of which each bit has a name."""

    A = 1


def again(value: Any) -> Any:
    allow = Allow([Access, Strict])
    (group,) = encode({"x": value}, allow=allow)
    return decode(group, allow=allow)["x"]


def test_flags_of_the_host_keep_bits_without_a_name() -> None:
    values = [Access(9), Access(8), Access(0), Access(3), Access.READ, ~Access.READ, Strict(0), Strict.A]
    got = again(values)
    assert [(type(each), each.value) for each in got] == [(type(each), each.value) for each in values]


def test_a_flag_that_is_none_by_now_is_lost() -> None:
    builder = Builder(Allow([Strict]), None, lambda *_: {})
    assert type(builder.flag(f"{__name__}.Strict", 8)) is NotKept


def test_flags_that_were_kept_by_their_names_still_come_back() -> None:
    builder = Builder(Allow([Access]), None, lambda *_: {})
    assert builder.member(f"{__name__}.Access", ("READ", "WRITE")) is Access(3)
