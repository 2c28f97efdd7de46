"""Tables that are made of dataclasses have no field that guest code may not read.

Stopped by: sandbox.libraries.pandas.dataclass_rows.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox


@dataclasses.dataclass(repr=False)
class Account:
    owner: str = "ann"
    _token: str = "secret"


@dataclasses.dataclass(repr=False)
class Listed:
    owner: str = "ann"
    token: str = "secret"


@dataclasses.dataclass(repr=False)
class Open:
    owner: str = "ann"
    share: float = 1


@dataclasses.dataclass
class Holder:
    account: Any = None


@pytest.fixture(params=["pandas", "polars"])
def table(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


def sandbox(table: Any, strict: bool) -> Sandbox:
    policy = Policy.default(strict=strict)
    policy.module(table, name="table")
    for each in Account, Open, Holder:
        policy.cls(each)
    policy.cls(Listed, exclude=["_*", "token"])
    policy.fn(lambda: table.DataFrame([Account()]).shape, name="shape")
    return Sandbox(policy)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("what", ["Account()", "Listed()", "Holder(Account())", "Holder([{'a': Listed()}])"])
@pytest.mark.parametrize(
    "how", ["table.DataFrame([{}])", "table.DataFrame(x for x in [{}])", "[*map(table.DataFrame, [[{}]])]"]
)
def test_fields_that_are_left_out_are_not_unpacked(table: Any, how: str, what: str, strict: bool) -> None:
    found = sandbox(table, strict).exec(f"import table\nstr({how.format(what)})")

    assert isinstance(found.error, SandboxError), found


@pytest.mark.parametrize("strict", [False, True])
def test_what_may_be_read_is_unpacked_as_natively(table: Any, strict: bool) -> None:
    own = "import dataclasses, table\n@dataclasses.dataclass\nclass P:\n  x: float = 1\n  y: str = 'a'\n"
    guest = sandbox(table, strict)

    assert guest.exec("import table\ntable.DataFrame([Open(), Open('bob')])").value.equals(
        table.DataFrame([Open(), Open("bob")])
    )
    assert guest.exec(f"{own}table.DataFrame([P(), P(2)]).shape").value == (2, 2)
    assert guest.exec("shape()").value == (1, 2)


@pytest.mark.parametrize("strict", [False, True])
def test_an_object_that_turns_into_another_while_it_is_looked_at_is_not_unpacked(
    table: Any, strict: bool
) -> None:
    source = """
import dataclasses, table
class Turning:
    reads = 0
    @property
    def account(self):
        Turning.reads += 1
        return 1 if Turning.reads < 3 else Account()
    @account.setter
    def account(self, value): pass
@dataclasses.dataclass
class Own(Turning):
    account: object = dataclasses.field()
text = str(table.DataFrame([Own(1)]))
"""
    for reads in range(1, 6):
        found = sandbox(table, strict).exec(source.replace("< 3", f"< {reads}"))
        assert "secret" not in str(found.namespace.get("text")), found
