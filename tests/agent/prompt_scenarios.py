"""The requests that `tests/agent/prompts` holds word for word.

Run this file with ``--write`` to write them anew, or without, to see how large they are.
"""

from __future__ import annotations

import asyncio
import math
import re
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import inhouse
import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from agex.agent import Agent
from agex.state import Live
from agex.testing import ScriptedModel
from agex.tinyagent import TinyCodeAgent, tool

FOLDER = Path(__file__).parent / "prompts"

SALES = pd.DataFrame(
    {
        "day": pd.date_range("2024-01-01", periods=40, freq="D"),
        "shop": ["north", "south", "east", "west"] * 10,
        "units": range(40),
        "price": [1.5, 2.5, math.nan, 4.0] * 10,
    }
)


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    city: str = Field(min_length=1)
    zip_code: str = Field(pattern=r"^\d{5}$", description="five digits")


class Customer(BaseModel):
    """A customer with all that is known of them."""

    number: int = Field(ge=1, description="as printed on the invoice")
    name: str = Field(min_length=1, max_length=80)
    email: str | None = None
    born: date | None = None
    home: Address
    addresses: list[Address] = []
    level: Literal["basic", "gold"] = "basic"
    category: inhouse.Category = inhouse.Category.PART
    spent: float = Field(0.0, ge=0)
    orders: dict[str, int] = {}
    score: Annotated[float, Field(ge=0, le=1, description="0 is bad, 1 is good")]
    notes: tuple[str, ...] = ()


def _sent(declare: Callable[[Agent], Any], *args: Any, tools: bool = False, **settings: Any) -> str:
    """Return the first two requests of a task: the code of the first turn fails."""
    model = ScriptedModel(["```python\nx = 1\n1 / 0\n```", "```python\ntask_fail('no')\n```"], tools=tools)
    task = declare(Agent(model=model, name="agent", max_iterations=10, **settings))
    try:
        answer = task(*args)
        if asyncio.iscoroutine(answer):
            asyncio.run(answer)
    except Exception as error:
        if type(error).__name__ != "TaskFail":
            raise
    return _text(model)


def _text(model: ScriptedModel) -> str:
    first, second = model.requests
    shown = (
        str(first)
        + "\n\n"
        + "\n\n".join(f"[{m.role}]\n{m.text}" for m in second.messages[len(first.messages) :])
    )
    return re.sub(r"Python 3\.\d+", "Python 3.x", shown)


def nothing(tools: bool = False) -> str:
    def declare(agent: Agent) -> Any:
        @agent.task
        def largest(numbers: list[int]) -> int:
            """Return the largest number that is no power of two."""

        return largest

    return _sent(declare, [3, 8, 7, 16], tools=tools)


def pandas(*more: Any, tools: bool = False) -> str:
    def declare(agent: Agent) -> Any:
        for module in (pd, *more):
            agent.module(module)

        @agent.task("Round to two digits.")
        def revenue(sales: pd.DataFrame, by: str = "shop") -> pd.DataFrame:
            """Return the revenue (units times price) by some column, largest first."""

        return revenue

    return _sent(declare, SALES, tools=tools)


def classes(tools: bool = False) -> str:
    def declare(agent: Agent) -> Any:
        agent.module(inhouse, name="inhouse")
        agent.cls(inhouse.Warehouse)
        agent.cls(inhouse.Category)

        @agent.task
        def reorder(stock: inhouse.Warehouse, supplier: inhouse.Supplier) -> list[inhouse.Order]:
            """Order what the supplier has cheaper."""

        return reorder

    items = [inhouse.Item("a01", "hammer", 12.5, inhouse.Category.TOOL), inhouse.Item("b02", "screw", 0.1)]
    return _sent(declare, inhouse.Warehouse(items), inhouse.Supplier("Acme", "DE", items[:1]), tools=tools)


def model(tools: bool = False) -> str:
    def declare(agent: Agent) -> Any:
        @agent.task
        def read(text: str) -> list[Customer]:
            """Read the customers from a letter."""

        return read

    return _sent(declare, "Dear Ada Lovelace of 12345 London, ...", tools=tools)


def asynchronous(tools: bool = False) -> str:
    def declare(agent: Agent) -> Any:
        @agent.fn
        async def fetch_price(name: str) -> float:
            """Return today's price."""
            return 1.0

        @agent.task
        async def cheapest(names: list[str]) -> str:
            """Return the cheapest of some things.

            >>> cheapest(["a"])
            'a'
            """

        return cheapest

    return _sent(declare, ["a", "b"], tools=tools, state=Live())


def tiny(tools: bool = False, **settings: Any) -> str:
    @tool
    def weather(city: str, day: date | None = None) -> str:
        """Return the weather of a city.

        Of today, if no day is given.
        """
        return "fine"

    answers = ["```python\n1 / 0\n```", "```python\nfinal_answer(1)\n```"]
    double = ScriptedModel(answers, tools=tools)
    TinyCodeAgent(model=double, tools=[weather], **settings).run_sync("Where is the weather best?")
    return _text(double)


def small() -> str:
    double = ScriptedModel(
        ["```python\ndef double(x): return x\n```", "```python\ntask_fail('')\n```"], style="completion"
    )
    agent = Agent(model=double)

    @agent.task
    def double_it(x: int) -> int:
        """Double it.

        >>> double_it(2)
        4
        """

    try:
        double_it(3)
    except Exception as error:
        if type(error).__name__ != "TaskFail":
            raise
    return _text(double)


SCENARIOS: dict[str, Callable[[], str]] = {
    "nothing_fenced": nothing,
    "nothing_tools": lambda: nothing(tools=True),
    "pandas_fenced": pandas,
    "pandas_tools": lambda: pandas(tools=True),
    "pandas_numpy_fenced": lambda: pandas(np),
    "classes_fenced": classes,
    "classes_tools": lambda: classes(tools=True),
    "model_fenced": model,
    "model_tools": lambda: model(tools=True),
    "async_fenced": asynchronous,
    "small": small,
    "tiny_fenced": tiny,
    "tiny_tools": lambda: tiny(tools=True),
    "tiny_pandas_fenced": lambda: tiny(extra_imports=["pandas", "numpy"]),
}


def main() -> None:
    """Print the size of each request, in characters / 4; with ``--write`` write them to their files."""
    for name, make in SCENARIOS.items():
        text = make()
        if "--write" in sys.argv:
            (FOLDER / f"{name}.txt").write_text(f"{text}\n", encoding="utf-8")
        first = text.partition("\n\n[assistant]\n")[0]
        sys.stdout.write(f"{name:20} {len(first) // 4:6}\n")


if __name__ == "__main__":
    main()
