"""Tests of frozen code: the examples of the task, its checks, and the calls that the code solved."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agex.agent.call.terms import Terms, example_inputs
from agex.agent.durable.solution_entries import SolvedCall
from agex.agent.task.annotation_source import public_place
from agex.agent.task.value_source import Imports, NotSource, source_of
from agex.contract import Example, TaskSignature

__all__ = ["tests_text"]

_INPUTS = '''class Inputs(dict[str, Any]):
    """The inputs of a call, as the task's checks get them."""

    def __getattr__(self, name: str) -> Any:
        return self[name]'''


@dataclass(frozen=True)
class _Case:
    """A call with its inputs, as source."""

    inputs: dict[str, str]
    value: str | None


def tests_text(module: str, terms: Terms, calls: Iterable[SolvedCall]) -> str:
    """Return the tests of the function in a module."""
    imports = Imports()
    signature = terms.signature
    imports.name(module, signature.name)
    if signature.is_async:
        imports.module("asyncio")
    left_out: list[str] = []
    blocks = [
        *_example_tests(terms, imports, left_out),
        *_call_tests(signature, calls, imports, left_out),
        *_check_tests(terms, calls, imports, left_out),
    ]
    notes = ["\n".join(f"# Left out: {why}." for why in left_out)] if left_out else []
    if not blocks:
        notes.append("# Nothing is known that could be tested: write a test.")
    about = f'"""Tests of {module}.{signature.name}: examples, checks, and calls that it solved."""'
    head = "\n\n".join([about, "from __future__ import annotations", "\n".join(imports.lines())])
    return "\n\n\n".join([head, *notes, *blocks]) + "\n"


def _call(signature: TaskSignature, inputs: Mapping[str, Any], imports: Imports) -> str:
    args, kwargs = signature.arguments(inputs)
    shown = [source_of(each, imports) for each in args]
    shown += [
        f"{name}={source_of(each, imports)}"
        if name.isidentifier()
        else f"**{{{name!r}: {source_of(each, imports)}}}"
        for name, each in kwargs.items()
    ]
    return _run(signature, f"{signature.name}({', '.join(shown)})")


def _run(signature: TaskSignature, call: str) -> str:
    return f"asyncio.run({call})" if signature.is_async else call


# -- examples ------------------------------------------------------------------------------------


def _example_tests(terms: Terms, imports: Imports, left_out: list[str]) -> Iterator[str]:
    for number, example in enumerate(terms.examples, 1):
        try:
            body = _example_body(example, terms.signature, imports)
        except NotSource as error:
            left_out.append(f"example {number}, {example.source!r}: {error}")
            continue
        yield _test(f"example_{number}", body)


def _example_body(example: Example, signature: TaskSignature, imports: Imports) -> list[str]:
    if not example.is_doctest:
        inputs = example_inputs(example, signature)
        assert inputs is not None
        return [f"assert {_call(signature, inputs, imports)} == {source_of(example.expected, imports)}"]
    source = _awaited(example.source, signature)
    if example.error is not None:
        kind, _, message = example.error.strip().partition(": ")
        imports.module("pytest")
        imports.module("re")
        expected = kind if isinstance(getattr(builtins, kind, None), type) else "Exception"
        match = "" if example.flags else f", match=re.escape({message!r})"
        return [f"with pytest.raises({expected}{match}):", f"    {source}"]
    try:
        value = ast.literal_eval(example.expected_text)
    except (ValueError, SyntaxError):
        imports.module("doctest")
        want, flags = f"{example.expected_text}\n", example.flags
        said = f"repr({source}) + '\\n'"
        return [f"assert doctest.OutputChecker().check_output({want!r}, {said}, {flags})"]
    if example.is_stated and any(type(each) is float for each in _constants(example.expected_text)):
        raise NotSource("its fractions are as exact as they are written")
    return [f"assert {source} == {source_of(value, imports)}"]


def _constants(source: str) -> list[object]:
    return [each.value for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Constant)]


def _awaited(source: str, signature: TaskSignature) -> str:
    """Return an expression with the call of the task run to its end."""
    if not signature.is_async:
        return source

    class Runs(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.Call:
            self.generic_visit(node)
            if isinstance(node.func, ast.Name) and node.func.id == signature.name:
                return ast.parse(f"asyncio.run({ast.unparse(node)})", mode="eval").body  # type: ignore[return-value]
            return node

    return ast.unparse(Runs().visit(ast.parse(source, mode="eval")))


# -- calls ---------------------------------------------------------------------------------------


def _call_tests(
    signature: TaskSignature, calls: Iterable[SolvedCall], imports: Imports, left_out: list[str]
) -> Iterator[str]:
    for number, one in enumerate(calls, 1):
        try:
            call = _call(signature, one.inputs, imports)
            body = _compared(call, one.value, imports)
        except (NotSource, KeyError) as error:
            left_out.append(f"recorded call {number}: {error}")
            continue
        yield _test(f"recorded_call_{number}", [body])


def _compared(call: str, value: Any, imports: Imports) -> str:
    text = source_of(value, imports)
    return f"assert {call} is {text}" if value is None or type(value) is bool else f"assert {call} == {text}"


def _check_tests(
    terms: Terms, calls: Iterable[SolvedCall], imports: Imports, left_out: list[str]
) -> Iterator[str]:
    places = []
    for number, check in enumerate(terms.checks, 1):
        place = public_place(check)
        if place is None:
            left_out.append(f"check {number}: it cannot be imported from a module")
        else:
            places.append(place)
    inputs = []
    for one in calls:
        try:
            source_of(dict(one.inputs), Imports())
        except NotSource:
            continue
        inputs.append(one.inputs)
    if not places or not inputs:
        return
    imports.name("typing", "Any")
    yield _INPUTS
    for number, given in enumerate(inputs, 1):
        lines = [f"inputs = Inputs({source_of(dict(given), imports)})"]
        lines.append(f"value = {_call(terms.signature, given, imports)}")
        lines += [f"assert {imports.name(*place)}(value, inputs) in (None, True)" for place in places]
        yield _test(f"checks_of_call_{number}", lines)


def _test(name: str, body: list[str]) -> str:
    lines = "\n".join(f"    {line}" for line in body)
    return f"def test_{name}() -> None:\n{lines}"
