"""The source of one function or class, cut out of the program that defined it.

Expressions that a ``def`` statement evaluates are left out: its decorators ran already, its defaults are
kept as values, its annotations become text. A class statement is kept whole: it runs again.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dis
import functools
import inspect
import io
import symtable
import textwrap
import types
from collections.abc import Iterator
from typing import NamedTuple

from agex._interpreter import syntax_trees
from agex.values.code.reconstructor import GIVEN, MADE, RUN

__all__ = [
    "Statement",
    "annotation_names",
    "annotation_texts",
    "class_statement",
    "function_lines",
    "function_program",
    "global_names",
    "header_parameters",
]

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@functools.lru_cache(maxsize=64)
def _tree(source: str) -> ast.Module:
    return syntax_trees.parse(source)


@functools.lru_cache(maxsize=1024)
def function_program(source: str, code: types.CodeType) -> str | None:
    """Return a program that defines the function of *code*, over parameters for its captured variables.

    Args:
        source: the program that *code* was compiled from.
        code: the function's code.

    Returns:
        None if the source has no such function.
    """
    node = _find_function(_tree(source), code)
    if node is None:
        return None
    node = copy.deepcopy(node)
    _strip(node)
    made: ast.stmt
    if isinstance(node, ast.Lambda):
        made = ast.Assign([ast.Name(MADE, ast.Store())], node)
        name: str | None = None
    else:
        made, name = node, node.name
    return _program(made, name, code.co_freevars)


@functools.lru_cache(maxsize=256)
def function_lines(source: str, code: types.CodeType) -> str | None:
    """Return the lines of the function of *code* as they were written, without the indent around it.

    Returns:
        None if the source has no such function.
    """
    node = _find_function(_tree(source), code)
    if node is None:
        return None
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    lines = io.StringIO(source, newline=None).readlines()
    return textwrap.dedent("".join(lines[first - 1 : node.end_lineno]))


@functools.lru_cache(maxsize=1024)
def annotation_texts(source: str, code: types.CodeType) -> tuple[tuple[str, str], ...]:
    """Return the annotations of the function of *code*, by parameter and ``return``, as text.

    The function is not asked: from Python 3.14 on that runs its code.
    """
    node = _find_function(_tree(source), code)
    if node is None or isinstance(node, ast.Lambda):
        return ()
    args = node.args
    given = (*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg)
    found = [(each.arg, each.annotation) for each in given if each is not None]
    texts = ((name, _as_text(each)) for name, each in (*found, ("return", node.returns)))
    return tuple((name, str(text.value)) for name, text in texts if text is not None)


@functools.lru_cache(maxsize=1024)
def annotation_names(source: str, code: types.CodeType) -> frozenset[str]:
    """Return the names in the annotations of the function of *code*."""
    found: set[str] = set()
    for _, text in annotation_texts(source, code):
        found |= _named(ast.Constant(text))
    return frozenset(found)


_TEXT = 1000
"""Characters of a text that is read as an annotation."""


def _named(annotation: ast.expr) -> set[str]:
    """Return the names in an annotation, in texts that are expressions, too."""
    names = _names_in(annotation)
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and type(node.value) is str and len(node.value) <= _TEXT:
            # It may be a word, as in Literal["no name"], or what no parser takes.
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                names |= _named(syntax_trees.parse_expression(node.value).body)
    return names


class Statement(NamedTuple):
    """A class statement as it will run again."""

    program: str
    """The program that makes the class, or a function that does where it captured variables or takes its
    header."""
    parameters: tuple[str, ...]
    """Its parameters: `header_parameters`, where it takes them."""
    names: frozenset[str]
    """The global names that the statement itself looks up, outside its methods' bodies."""
    takes_header: bool
    """Whether bases and keywords are parameters: they were said with variables of the call around it."""
    is_bare: bool
    """Whether a decorator that was such a variable is left out."""


@functools.lru_cache(maxsize=256)
def class_statement(
    source: str, line: int, name: str, free: tuple[str, ...], *, bases: int, keywords: tuple[str, ...]
) -> Statement | None:
    """Return the statement that makes a class again.

    The variables of a call around it are gone when it runs again. Captured variables are kept; bases and
    keywords become arguments; a decorator is left out, and the caller keeps its changes to the class.

    Args:
        source: the program that made the class.
        line: the first line of its body's code: that of its statement, or of its first decorator.
        name: its name.
        free: the variables of functions around it that it captured.
        bases: how many bases it was made with.
        keywords: and with which keywords.

    Returns:
        None if the source has no such class.
    """
    tree = _tree(source)
    node = _find_class(tree, name, line)
    if node is None:
        return None
    node = copy.deepcopy(node)
    local = _local_names(source, node) - {each.name for each in getattr(node, "type_params", ())}
    given: list[ast.Name] = []
    takes_header = not local.isdisjoint(_names_in(*node.bases, *(each.value for each in node.keywords)))
    if takes_header:
        if getattr(node, "type_params", ()):
            return None
        given = [ast.Name(each, ast.Load()) for each in header_parameters(bases + len(keywords))]
        node.bases = [*given[:bases]]
        node.keywords = [ast.keyword(*each) for each in zip(keywords, given[bases:], strict=True)]
    parameters = tuple(each.id for each in given)
    kept = [each for each in node.decorator_list if local.isdisjoint(_names_in(each) - {*free})]
    is_bare = len(kept) < len(node.decorator_list)
    node.decorator_list = [*kept, ast.Name(_LEFT_OUT, ast.Load())] if is_bare else kept
    program = "".join(_futures(tree)) + _class_program(node, free, parameters)
    return Statement(program, parameters, _names_when_run(program) - {name}, takes_header, is_bare)


_LEFT_OUT = "left_out_here"
"""A decorator that does nothing, in place of those left out, so that they stay out when the class is kept
again."""


def _class_program(node: ast.ClassDef, free: tuple[str, ...], parameters: tuple[str, ...]) -> str:
    """Return the program of a class: a function over cells makes one that captures variables."""
    is_bare = any(isinstance(each, ast.Name) and each.id == _LEFT_OUT for each in node.decorator_list)
    if not (free or parameters or is_bare):
        return _program(node, node.name, ())
    made: list[ast.stmt] = [node, ast.Return(ast.Name(node.name, ast.Load()))]
    outside: list[ast.stmt] = [ast.Return(ast.Name(RUN, ast.Load()))]
    if free:
        made.insert(0, ast.Nonlocal([*free]))
        outside.insert(0, ast.Assign([ast.Name(each, ast.Store()) for each in free], ast.Constant(None)))
    if is_bare:
        outside.insert(0, _function(_LEFT_OUT, ("made",), [ast.Return(ast.Name("made", ast.Load()))]))
    outside.insert(-1, _function(RUN, (), made))
    return _called(_function(MADE, parameters, outside))


def header_parameters(count: int) -> tuple[str, ...]:
    """Return the names of the parameters for bases and keywords."""
    return tuple(f"header_here{number}" for number in range(count))


def _names_in(*nodes: ast.expr) -> set[str]:
    return {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}


def _local_names(source: str, node: ast.ClassDef) -> set[str]:
    """Return the names that are variables of a function or class around a class statement."""
    tables = [symtable.symtable(source, "<class>", "exec")]
    while tables:
        table = tables.pop()
        children = table.get_children()
        if table.get_type() != "module" and any(
            (each.get_type(), each.get_name(), each.get_lineno()) == ("class", node.name, node.lineno)
            for each in children
        ):
            return {each.get_name() for each in table.get_symbols() if not each.is_global()}
        tables += children
    return set()


def _names_when_run(program: str) -> frozenset[str]:
    """Return the global names that a program looks up, outside the bodies of functions but its own."""
    rest = [compile(program, "<class>", "exec", dont_inherit=True)]
    found: set[str] = set()
    while rest:
        each = rest.pop()
        found |= _looked_up(each)
        rest += filter(_runs_at_once, _nested(each))
    return frozenset(found - {MADE, GIVEN})


def _runs_at_once(code: types.CodeType) -> bool:
    """Return whether code runs with the code around it: a class body, a comprehension."""
    is_function = code.co_flags & inspect.CO_NEWLOCALS
    return not is_function or code.co_name.startswith("<") or code.co_name in {MADE, RUN}


@functools.lru_cache(maxsize=1024)
def global_names(code: types.CodeType) -> frozenset[str]:
    """Return the global names that a function's code, or code nested in it, reads or changes."""
    found = set(_looked_up(code))
    for each in _nested(code):
        found |= global_names(each)
    return frozenset(name for name in found if name.isidentifier())


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    return (each for each in code.co_consts if isinstance(each, types.CodeType))


_GLOBAL = {"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}


def _looked_up(code: types.CodeType) -> set[str]:
    return {step.argval for step in dis.get_instructions(code) if step.opname in _GLOBAL}


# -- finding -------------------------------------------------------------------------------------


def _find_function(tree: ast.Module, code: types.CodeType) -> _Function | None:
    kinds = (ast.Lambda,) if code.co_name == "<lambda>" else (ast.FunctionDef, ast.AsyncFunctionDef)
    found: list[_Function] = [
        node
        for node in ast.walk(tree)
        if isinstance(node, kinds)
        and code.co_firstlineno in {node.lineno, _first_line(node)}
        and (isinstance(node, ast.Lambda) or node.name == code.co_name)
    ]
    if len(found) > 1:  # lambdas of one line: the innermost whose body the code's instructions are in
        found = sorted(filter(functools.partial(_contains, code), found), key=_length)
    return found[0] if found else None


def _first_line(node: ast.AST) -> int:
    return min((each.lineno for each in getattr(node, "decorator_list", ())), default=0)


def _contains(code: types.CodeType, node: _Function) -> bool:
    """Return whether the instructions of *code* are in the body of a lambda.

    In its body, not just in the lambda: one that gives another lambda has all its instructions in that one.
    """
    body = node.body if isinstance(node, ast.Lambda) else node
    assert isinstance(body, ast.expr | ast.stmt)
    assert body.end_lineno is not None
    assert body.end_col_offset is not None
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return all(start <= place < end for place in _places(code))


def _places(code: types.CodeType) -> Iterator[tuple[int, int]]:
    """Return where the instructions begin; those that the compiler adds have no position or no width."""
    for line, end_line, column, end_column in code.co_positions():
        if line is not None and column is not None and (line, column) != (end_line, end_column):
            yield line, column


def _length(node: _Function) -> int:
    return len(ast.unparse(node))


def _find_class(tree: ast.Module, name: str, line: int) -> ast.ClassDef | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == name and line in {node.lineno, _first_line(node)}:
            return node
    return None


def _futures(tree: ast.Module) -> Iterator[str]:
    """Return the imports from the future of a program, which decide how the rest is read."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            yield ast.unparse(node) + "\n"


# -- cutting -------------------------------------------------------------------------------------


def _strip(node: _Function) -> None:
    """Leave out the expressions that run when a function is defined."""
    if not isinstance(node, ast.Lambda):
        node.decorator_list = []
        node.returns = _as_text(node.returns)
    args = node.args
    for each in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if each is not None:
            each.annotation = _as_text(each.annotation)
    args.defaults = [_harmless(each) for each in args.defaults]
    args.kw_defaults = [None if each is None else _harmless(each) for each in args.kw_defaults]


def _harmless(default: ast.expr) -> ast.expr:
    """Return a default for a program that runs again.

    A short literal stays, so that the source reads as it was written; the value is kept beside the program.
    """
    literal = default.operand if isinstance(default, ast.UnaryOp) else default
    is_short = isinstance(literal, ast.Constant) and len(repr(literal.value)) <= _LITERAL
    return default if is_short else ast.Constant(None)


_LITERAL = 80
"""Characters of a literal that stays."""


def _as_text(annotation: ast.expr | None) -> ast.Constant | None:
    if annotation is None or (isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)):
        return annotation
    return ast.Constant(ast.unparse(annotation))


def _program(made: ast.stmt, name: str | None, free: tuple[str, ...]) -> str:
    """Return the program that runs a statement, inside a function if it captures variables, and names it."""
    body: list[ast.stmt] = [made]
    if free:
        result = ast.Return(ast.Name(name or MADE, ast.Load()))
        return _called(_function(MADE, free, [made, result]))
    if name is not None:
        body.append(ast.Assign([ast.Name(MADE, ast.Store())], ast.Name(name, ast.Load())))
    return _text(body)


def _function(name: str, parameters: tuple[str, ...], body: list[ast.stmt]) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(each) for each in parameters], None, [], [], None, [])
    made = ast.FunctionDef(name, arguments, body, [], None)
    made.type_params = []  # type: ignore[attr-defined,unused-ignore]
    return made


def _called(function: ast.FunctionDef) -> str:
    """Return the program that defines a function and binds its result to the name `MADE`."""
    given = ast.Starred(ast.Name(GIVEN, ast.Load()), ast.Load())
    made = ast.Call(ast.Name(MADE, ast.Load()), [given], [])
    return _text([function, ast.Assign([ast.Name(MADE, ast.Store())], made)])


def _text(body: list[ast.stmt]) -> str:
    return ast.unparse(ast.fix_missing_locations(ast.Module(body, []))) + "\n"
