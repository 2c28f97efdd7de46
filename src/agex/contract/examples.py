"""Examples that bind a task: a call and its required outcome."""

from __future__ import annotations

import ast
import builtins
import copy
import math
import re
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from agex._interpreter import syntax_trees
from agex._interpreter.type_slots import name_of
from agex.contract.equality import same_value
from agex.contract.example_lines import stated_examples
from agex.contract.plain_values import bare, holds_guest_made, shown_as
from agex.contract.preview import short_repr
from agex.errors import DefinitionError
from agex.escaping import line

if TYPE_CHECKING:
    import doctest  # it brings the debugger and unittest along, so it waits for the first example

__all__ = [
    "Example",
    "describe_failure",
    "doc_examples",
    "given_examples",
    "got_instead",
    "outcome_matches",
    "shown_repr",
]


class _Unset(Enum):
    """A sentinel that is the same in every process."""

    UNSET = 0


_UNSET: Any = _Unset.UNSET


@dataclass(frozen=True, kw_only=True)
class Example:
    """One call of the task and its outcome."""

    source: str
    """The call as text, e.g. ``f(2)``, or an expression around it, e.g. ``round(f(2), 1)``."""
    expected_text: str
    """The outcome as text: a repr, or ``ValueError: message``."""
    expected: Any = field(default=_UNSET, repr=False)
    """The value itself, for an example given as objects."""
    error: str | None = None
    """The last line of the traceback expected, for an example that raises."""
    flags: int = field(default=0, repr=False)
    """doctest option flags."""
    is_stated: bool = field(default=False, repr=False)
    """Whether a docstring states it in words: a literal, with fractions as exact as they are written."""
    around: str | None = field(default=None, repr=False)
    """The expression around the call, evaluated before the comparison: ``round(_, 1)``; None for nothing."""
    _call: tuple[tuple[Any, ...], Mapping[str, Any]] | None = field(default=None, repr=False)
    _source_call: str = field(default="", repr=False)

    @property
    def is_doctest(self) -> bool:
        """Whether it was read from a docstring."""
        return self.expected is _UNSET

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return fresh ``(args, kwargs)`` of the call.

        Arguments of a doctest are evaluated with the builtins and nothing else; their exceptions
        come through.
        """
        if self._call is not None:
            args, kwargs = copy.deepcopy(self._call)
            return args, dict(kwargs)
        found: tuple[tuple[Any, ...], dict[str, Any]] = _evaluate(self._source_call, "_", _capture)
        return found

    def seen(self, value: Any) -> Any:
        """Return the value to compare: *value*, or the expression around the call applied to it.

        A guest subclass of a builtin class is reduced to its base first: ``round`` would call guest code.
        """
        plain = bare(value)
        return plain if self.around is None else bare(_evaluate(self.around, "_", plain))


def _evaluate(source: str, name: str, value: Any) -> Any:
    """Evaluate the host's own docstring; the names it may use were looked at when it was read."""
    return eval(compile(source, "<example>", "eval"), {name: value})  # noqa: S307


def _capture(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


def doc_examples(doc: str | None, name: str) -> tuple[Example, ...]:
    """Read the examples of a docstring that are calls of the task *name*: doctests, then those in words.

    An expression around one call counts too, e.g. ``round(f(2), 1)``. Left alone: what is skipped,
    what does not call the task just once, what uses names that are not builtins, what states no
    outcome, and what is malformed. For examples in words see `example_lines`.
    """
    if doc is None:
        return ()
    tests, prose = _parsed(doc) if ">>>" in doc else ([], doc)
    stated = [
        Example(
            source=f"{name}({each.arguments})",
            expected_text=each.outcome,
            is_stated=True,
            _source_call=f"_({each.arguments})",
        )
        for each in stated_examples(prose, name)
    ]
    return (*(_from_doctest(each, name) for each in tests if _binds(each, name)), *stated)


def _parsed(doc: str) -> tuple[list[doctest.Example], str]:
    """Divide a docstring into its doctests and the rest; of a malformed one, the broken tests are left out.

    A prompt whose line states no outcome below is left in the rest: it may be ``>>> f(2) == 4``.
    """
    import doctest

    try:
        parts = doctest.DocTestParser().parse(doc)
    except ValueError:
        pieces = re.split(r"^(?=[ \t]*>>>)", doc, flags=re.MULTILINE)
        whole = [_parsed(piece) for piece in pieces if len(pieces) > 2]
        return [each for tests, _ in whole for each in tests], "\n".join(rest for _, rest in whole)
    tests = [each for each in parts if isinstance(each, doctest.Example)]
    kept = [each for each in tests if each.options.get(doctest.SKIP) is not True]
    rest = [
        each if isinstance(each, str) else f">>> {each.source}" if each in kept and not each.want else ""
        for each in parts
    ]
    return kept, "\n".join(rest)


def _binds(example: doctest.Example, name: str) -> bool:
    try:
        tree = syntax_trees.parse_expression(example.source.strip()).body
    except (SyntaxError, ValueError):
        return False
    if len(_calls(tree, name)) != 1 or any(isinstance(node, _REPEATED) for node in _above(tree, name)):
        return False
    nodes = list(ast.walk(tree))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    used = {n.id for n in nodes if isinstance(n, ast.Name)} - {name}
    said_once = sum(isinstance(n, ast.Name) and n.id == name for n in nodes) == 1
    return said_once and bool(example.want) and all(each in bound or hasattr(builtins, each) for each in used)


_REPEATED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""A call inside one of these is made any number of times, or later."""


def _calls(tree: ast.AST, name: str) -> list[ast.Call]:
    """Return the calls of *name*."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


def _above(tree: ast.AST, name: str) -> list[ast.AST]:
    """Return the nodes that the call of *name* is a part of."""
    return [node for node in ast.walk(tree) if not isinstance(node, ast.Name) and _calls(node, name)]


class _Hole(ast.NodeTransformer):
    """Puts ``_`` where the call is."""

    def __init__(self, call: ast.Call) -> None:
        self.call = call

    def visit(self, node: ast.AST) -> Any:
        awaited = isinstance(node, ast.Await) and node.value is self.call
        return ast.Name("_", ast.Load()) if awaited or node is self.call else self.generic_visit(node)


def _from_doctest(example: doctest.Example, name: str) -> Example:
    flags = sum(flag for flag, on in example.options.items() if on)
    error = example.exc_msg
    tree = syntax_trees.parse_expression(example.source.strip()).body
    [call] = _calls(tree, name)
    whole = ast.unparse(tree).removeprefix("await ")
    around = ast.unparse(_Hole(call).visit(tree))
    call.func = ast.Name("_", ast.Load())
    return Example(
        source=whole,
        expected_text=(example.want if error is None else error).rstrip("\n"),
        error=error,
        flags=flags,
        around=None if around == "_" else around,
        _source_call=ast.unparse(call),
    )


def given_examples(examples: Iterable[object], name: str = "f") -> tuple[Example, ...]:
    """Read examples given as ``((args, kwargs), expected)``.

    Raises:
        DefinitionError: one of them has another form.
    """
    return tuple(_from_given(example, name) for example in examples)


def _from_given(example: object, name: str) -> Example:
    match example:
        case (((tuple() | list()) as args, dict() as kwargs), expected) if all(
            isinstance(key, str) for key in kwargs
        ):
            pass
        case _:
            raise DefinitionError(
                f"an example has the form ((args, kwargs), expected), got {short_repr(example)};\n"
                f"for {name}(2, base=10) == 4 write examples=[(((2,), {{'base': 10}}), 4)]"
            )
    shown = [short_repr(a, 200) for a in args] + [f"{k}={short_repr(v, 200)}" for k, v in kwargs.items()]
    return Example(
        source=f"{name}({', '.join(shown)})",
        expected_text=short_repr(expected, 200),
        expected=expected,
        _call=(tuple(args), kwargs),
    )


def outcome_matches(
    example: Example, *, value: Any = None, error: BaseException | None = None, value_repr: str | None = None
) -> bool:
    """Return whether the outcome of an example's call is the expected one.

    Args:
        example: the example.
        value: what the call returned.
        error: what the call raised instead.
        value_repr: the repr of *value*, where it should not be asked here.
    """
    if example.error is not None:
        return error is not None and _error_matches(example, error)
    if error is not None:
        return False
    if not example.is_doctest:
        return same_value(value, example.expected)
    if example.is_stated:
        return _reads_as(value, example.expected_text)
    expected = _literal(example.expected_text)
    shown = shown_repr(value) if value_repr is None else value_repr
    # A text that reads as plain data does not match an object with that repr.
    if _text_matches(example, shown) and (expected is _UNSET or not holds_guest_made(value)):
        return True
    return expected is not _UNSET and _is_plain(value) and same_value(value, expected)


def got_instead(example: Example, value: Any) -> str | None:
    """Return the wrong outcome that *value* shows for an example's own call; None where it is right.

    It calls the repr of the value: use it only where guest code may run.
    """
    seen: Any = None
    error: Exception | None = None
    try:
        seen = example.seen(value)
    except Exception as raised:  # noqa: BLE001 - the expression around the call may raise anything
        error = raised
        got = traceback.format_exception_only(raised)[-1].strip()
    else:
        got = _repr_of(seen)
    return None if outcome_matches(example, value=seen, error=error, value_repr=got) else got


def _repr_of(value: Any) -> str:
    try:
        return shown_repr(value)
    except Exception:  # noqa: BLE001 - it is a guest's
        return f"<{name_of(type(value))} without a repr>"


def shown_repr(value: Any) -> str:
    """Return the repr that an example's text is compared with; for plain data, never one of guest code."""
    return repr(shown_as(value))


def _literal(text: str) -> Any:
    """Return the plain data that *text* writes; ``_UNSET`` where it is anything else."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _UNSET


def _text_matches(example: Example, got: str) -> bool:
    import doctest

    flags = example.flags | doctest.DONT_ACCEPT_TRUE_FOR_1
    return doctest.OutputChecker().check_output(f"{example.expected_text}\n", f"{got}\n", flags)


def _reads_as(value: Any, text: str) -> bool:
    """Compare a value with the literal *text*; fractions in plain data to the places that are written."""
    literal = syntax_trees.parse_expression(text).body
    return same_value(value, ast.literal_eval(literal)) or (
        _is_plain(value) and _as_written(value, literal, text)
    )


def _as_written(value: Any, literal: ast.expr, text: str) -> bool:
    if isinstance(literal, ast.List | ast.Tuple):
        kind = list if isinstance(literal, ast.List) else tuple
        return (
            type(value) is kind
            and len(value) == len(literal.elts)
            and all(_as_written(one, each, text) for one, each in zip(value, literal.elts, strict=True))
        )
    if isinstance(literal, ast.Dict):
        pairs = zip(literal.keys, literal.values, strict=True)
        found = {ast.literal_eval(key): each for key, each in pairs if key is not None}
        return (
            type(value) is dict
            and value.keys() == found.keys()
            and all(_as_written(value[key], each, text) for key, each in found.items())
        )
    expected = ast.literal_eval(literal)
    if type(expected) is float and type(value) is float and math.isfinite(value):
        places = re.search(r"\.(\d+)$", ast.get_source_segment(text, literal) or "")
        return value == expected or (places is not None and round(value, len(places[1])) == expected)
    return same_value(value, expected)


_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...))


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(_is_plain(key) and _is_plain(each) for key, each in value.items())
    return type(value) in _PLAIN


def _error_matches(example: Example, error: BaseException) -> bool:
    import doctest

    want = (example.error or "").strip()
    got = traceback.format_exception_only(error)[-1].strip()
    kind, colon, message = want.partition(":")
    names = {cls.__name__ for cls in type(error).__mro__}
    if kind.rpartition(".")[2] not in names:
        return False
    if example.flags & doctest.IGNORE_EXCEPTION_DETAIL or not colon:
        return True
    said = got.partition(":")[2]
    return doctest.OutputChecker().check_output(message.strip() + "\n", said.strip() + "\n", example.flags)


def describe_failure(example: Example, got: str) -> str:
    """Write a failed example for the model: the call, what was expected, what came.

    Args:
        example: the example.
        got: the repr of the value, or ``ValueError: message`` for an error.
    """
    lines = {"call": example.source, "expected": example.expected_text, "got": got}
    told = [f"  {name + ':':<10}{_indented(text)}" for name, text in lines.items()]
    return "\n".join(["example failed", *told])


def _indented(text: str) -> str:
    return f"\n{' ' * 12}".join(map(line, text.strip().split("\n")))
