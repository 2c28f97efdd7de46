"""Servers that mean harm, with what they say and what they answer; and agent code that means harm to them.

Stopped by: mcp.
"""

from __future__ import annotations

import ast
import inspect
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agex.agent import Agent
from agex.agent.prompt.listing import LISTING_TOKENS, documentation, listing, tokens
from agex.errors import DefinitionError, ToolError
from agex.mcp import ToolServer
from agex.mcp.json_values import to_json
from agex.mcp.names import distinct, identifier, one_line
from agex.mcp.schema import Reader
from agex.mcp.typed_dicts import TypedDicts
from agex.testing import ScriptedModel, python_action

SERVERS = str(Path(__file__).parent / "servers.py")


def command(name: str) -> list[str]:
    return [sys.executable, SERVERS, "hostile", name]


@pytest.fixture(scope="module")
def evil() -> Iterator[ModuleType]:
    with ToolServer(command("os; import os\n")) as server:
        yield server.module()


def functions(module: ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if callable(value)}


def test_names_are_public_identifiers_each_but_once(evil: ModuleType) -> None:
    assert evil.__name__ == "os_import_os"
    assert list(functions(evil)) == [
        "import_os_os_system_id",
        "class_",
        "builtins",
        "tool_1_2",
        "a_b",
        "a_b_2",
        "tool",
        "tool_2",
        "x" * 64,
        "argue",
        "wide",
        "wrong",
        "missing",
        "lie",
    ]


def test_a_signature_is_python_whatever_the_schema_says(evil: ModuleType) -> None:
    for name, function in functions(evil).items():
        source = f"def {name}{inspect.signature(function)}: ..."
        assert source.isprintable()
        ast.parse(source)


def test_the_parameters_of_a_tool_are_identifiers(evil: ModuleType) -> None:
    assert str(inspect.signature(evil.argue)) == (
        "(self: str, class_: Literal[1], a_b: Any = ..., class__2: Any = ..., "
        "deep: list[list[typing.Any]] = ..., odd: Any = ..., union: Any = ..., many: Any = ...) -> Any"
    )


def test_a_tool_gets_its_arguments_under_its_own_names(evil: ModuleType) -> None:
    said = evil.argue("me", 1, a_b=2, class__2=3)
    assert said.startswith("argue: {'self': 'me', 'class': 1, 'a\\nb': 2, '__class__': 3}!")
    assert evil.wide(p7=1).startswith("wide: {'p7': 1}!")


@pytest.mark.parametrize("names", [["same"] * 20_000, ["a", "a_2", *["a"] * 20_000], ["\u202e"] * 20_000])
def test_equal_names_cost_no_more_than_others(names: list[str]) -> None:
    begun = time.thread_time()
    made = distinct(names, "tool")
    assert time.thread_time() - begun < 1  # one pass, no search from the start for each name
    assert len(set(made)) == len(names)


@pytest.mark.parametrize("combined", ["anyOf", "oneOf", "type"])
def test_parts_of_a_schema_that_refer_to_each_other_are_looked_at_so_often_only(combined: str) -> None:
    looked: list[str] = []

    class Watched(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            looked.append(key)
            return super().get(key, default)

    part = Watched(
        {combined: [{"$ref": "#/$defs/part"}] * 12} if combined != "type" else {"type": ["array"] * 12}
    )
    part |= {"items": {"$ref": "#/$defs/part"}}
    Reader({"$defs": {"part": part}}, TypedDicts("m", ())).annotation({combined: [part] * 12}, "x")
    assert len(looked) < 2_000


def test_descriptions_are_bounded_lines_that_close_no_quotation(evil: ModuleType) -> None:
    for text in [evil.__doc__, *(function.__doc__ for function in functions(evil).values())]:
        assert text is not None
        assert len(text) < 1_500
        assert not {'"""', "```", "\u202e", "\x1b", "\u2028"} & {
            text[i : i + n] for n in (1, 3) for i in range(len(text))
        }
        assert [line for line in text.split("\n") if not line.isprintable()] == []
        ast.parse(f'"""{text}"""')


def test_the_prompt_and_help_stay_bounded(evil: ModuleType) -> None:
    agent = Agent()
    with ToolServer(command("evil")) as server:
        agent.mcp(server)
        shown = listing(agent.registrations)
        helped = documentation("evil", agent.registrations)
    assert tokens(shown) <= LISTING_TOKENS
    assert shown.count("```") == 0
    assert len(helped) <= 6_100
    assert len(documentation(evil.argue, ())) <= 6_100


def test_an_error_and_an_answer_that_breaks_its_own_schema_are_bounded_errors(evil: ModuleType) -> None:
    with pytest.raises(ToolError) as caught:
        evil.class_()
    assert len(str(caught.value)) < 2_100
    with pytest.raises(ToolError, match="cannot be used"):
        evil.lie()


def test_a_server_does_not_take_the_place_of_an_installed_module() -> None:
    with ToolServer(command("json")) as server:
        for name in (None, "os", "numpy", "agex", "pandas.core", "builtins"):
            with pytest.raises(DefinitionError, match="is an installed module; give another name"):
                server.module(name)
        assert server.module("fine").__name__ == "fine"


class Sneaky(dict):  # type: ignore[type-arg]
    """A dict that answers otherwise when it is read again."""


def test_identifiers_are_ascii_public_and_no_keywords() -> None:
    made = [identifier(text, "tool") for text in ("ﬁle", "__x__", "None", "", "9", "a" * 100, "ａ")]
    assert made == ["le", "x", "None_", "tool", "tool_9", "a" * 64, "tool"]


def test_a_line_has_no_end_that_would_swallow_a_closing_quote() -> None:
    assert [one_line(text, 20) for text in ('a"', "a\\", 'a\\"\\', "a\nb\tc", "x" * 30, None)] == [
        "a",
        "a",
        "a",
        "a b c",
        "x" * 20 + " ...",
        "",
    ]


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def looped() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


REFUSED = {
    "an object": (object(), TypeError),
    "a subclass": (Sneaky(a=1), TypeError),
    "bytes": (b"x", TypeError),
    "a set": ({1}, TypeError),
    "keys that are no text": ({1: 2}, TypeError),
    "not a number": (float("nan"), ValueError),
    "infinity": (float("inf"), ValueError),
    "a huge integer": (10**30, ValueError),
    "a lone surrogate": ("\ud800", ValueError),
    "a surrogate as a key": ({"\ud800": 1}, ValueError),
    "deep": (nested(100), ValueError),
    "in itself": (looped(), ValueError),
    "many": ([0] * 200_000, ValueError),
    "much": ("x" * 11_000_000, ValueError),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_json_is_refused_before_anything_is_sent(kind: str) -> None:
    value, error = REFUSED[kind]
    with pytest.raises(error, match=r"x|tool"):
        to_json({"x": value})


def test_json_is_copied() -> None:
    given = {"x": [1, 2.5, None, True, "a", {"b": (1,)}]}
    made = to_json(given)
    assert made == {"x": [1, 2.5, None, True, "a", {"b": [1]}]}
    assert made["x"] is not given["x"]


ATTACKS = {
    "the closure": "books.count.__closure__",
    "the globals": "books.count.__globals__",
    "the wrapped": "books.count.__wrapped__",
    "a submodule": "import books.os",
    "a submodule by name": "from books import os",
    "a submodule of the room": "import books.server",
    "the module's loader": "books.__loader__",
    "the error's frames": "try:\n    books.lend('x')\nexcept Exception as e:\n    e.__traceback__.tb_frame",
    "the error's run": (
        "try:\n    books.lend('x')\n"
        "except Exception as e:\n    if e.run is None: raise KeyError('nothing there')"
    ),
    "an object with code": (
        "class D(dict):\n    def items(self): return [('title', 1)]\nbooks.titles([], D())"
    ),
}


@pytest.fixture(scope="module")
def books() -> Iterator[ToolServer]:
    with ToolServer([sys.executable, SERVERS, "library"]) as server:
        yield server


@pytest.mark.parametrize("attack", ATTACKS)
def test_agent_code_gets_no_more_of_a_server_than_its_functions(books: ToolServer, attack: str) -> None:
    codes = [f"import books\n{ATTACKS[attack]}", "import books\ntask_success(books.count('abc'))"]
    model = ScriptedModel([[python_action(code)] for code in codes])
    agent = Agent(model=model)
    agent.mcp(books, name="books")

    @agent.task
    def f() -> int: ...

    assert f() == 3
    assert "Error" in model.requests[1].messages[-1].content


def test_a_limit_ends_an_action_that_waits_for_a_tool(books: ToolServer) -> None:
    waiting = "import books\ntry:\n    books.wait(600)\nexcept BaseException:\n    pass"
    model = ScriptedModel([[python_action(waiting)], [python_action("task_success(books.count('abc'))")]])
    agent = Agent(model=model, timeout_seconds=0.3)
    agent.mcp(books, name="books")

    @agent.task
    def f() -> int: ...

    assert f() == 3
    assert "the code ran longer than 0.3 s" in model.requests[1].messages[-1].content
