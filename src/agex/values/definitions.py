"""The source of one function or class, cut out of the program that defined it.

What is evaluated when a ``def`` runs is left out: its decorators ran already, its defaults are kept as
values, its annotations become text. A class statement is kept whole: it runs again.
"""

from __future__ import annotations

import ast
import copy
import dis
import functools
import types
from collections.abc import Iterator

from agex.values.builder import GIVEN, MADE

__all__ = ["class_program", "function_program", "global_names", "statement_names"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@functools.lru_cache(maxsize=64)
def _tree(source: str) -> ast.Module:
    return ast.parse(source)


@functools.lru_cache(maxsize=1024)
def function_program(source: str, code: types.CodeType) -> str | None:
    """Give a program that defines the function of *code*, over parameters for its captured variables.

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
def class_program(source: str, line: int, name: str, free: tuple[str, ...]) -> str | None:
    """Give a program that makes a class again.

    Args:
        source: the program that made it.
        line: the first line of its body's code: that of its statement, or of its first decorator.
        name: its name.
        free: the variables of functions around it that it captured.
    """
    tree = _tree(source)
    node = _find_class(tree, name, line)
    if node is None:
        return None
    return "".join(_futures(tree)) + _program(node, name, free)


@functools.lru_cache(maxsize=256)
def statement_names(source: str, line: int, name: str) -> frozenset[str]:
    """Give the names that a class statement itself looks up when it runs, outside its methods' bodies."""
    node = _find_class(_tree(source), name, line)
    if node is None:
        return frozenset()
    code = compile(ast.Module([node], []), "<class>", "exec", dont_inherit=True)
    found: set[str] = set()
    rest = [code]
    while rest:
        each = rest.pop()
        found |= _looked_up(each)
        rest += [c for c in _nested(each) if not c.co_flags & 0x2 or c.co_name.startswith("<")]
    return frozenset(found)


@functools.lru_cache(maxsize=1024)
def global_names(code: types.CodeType) -> frozenset[str]:
    """Give the global names that a function's code, or code nested in it, reads or changes."""
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
    if len(found) > 1:  # lambdas of one line: the one that the code's instructions are in
        found = sorted(filter(functools.partial(_contains, code), found), key=_length)
    return found[0] if found else None


def _first_line(node: ast.AST) -> int:
    return min((each.lineno for each in getattr(node, "decorator_list", ())), default=0)


def _contains(code: types.CodeType, node: _Function) -> bool:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    places = [(line, column) for line, _, column, _ in code.co_positions() if line and column]
    return all(start <= place < end for place in places)


def _length(node: _Function) -> int:
    return len(ast.unparse(node))


def _find_class(tree: ast.Module, name: str, line: int) -> ast.ClassDef | None:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == name and line in {node.lineno, _first_line(node)}:
            return node
    return None


def _futures(tree: ast.Module) -> Iterator[str]:
    """Give what a program imports from the future: it says how the rest is read."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            yield ast.unparse(node) + "\n"


# -- cutting -------------------------------------------------------------------------------------


def _strip(node: _Function) -> None:
    """Leave out what runs when a function is defined."""
    if not isinstance(node, ast.Lambda):
        node.decorator_list = []
        node.returns = _as_text(node.returns)
    args = node.args
    for each in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if each is not None:
            each.annotation = _as_text(each.annotation)
    none = ast.Constant(None)
    args.defaults = [none for _ in args.defaults]
    args.kw_defaults = [None if each is None else none for each in args.kw_defaults]


def _as_text(annotation: ast.expr | None) -> ast.expr | None:
    if annotation is None or (isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)):
        return annotation
    return ast.Constant(ast.unparse(annotation))


def _program(made: ast.stmt, name: str | None, free: tuple[str, ...]) -> str:
    """Give the program that runs a statement, inside a function if it captures variables, and names it."""
    body: list[ast.stmt] = [made]
    if free:
        parameters = ast.arguments([], [ast.arg(each) for each in free], None, [], [], None, [])
        result = ast.Return(ast.Name(name or MADE, ast.Load()))
        body = [ast.FunctionDef(MADE, parameters, [made, result], [], None)]
        body[0].type_params = []  # type: ignore[attr-defined,unused-ignore]
        given = ast.Starred(ast.Name(GIVEN, ast.Load()), ast.Load())
        made_now: ast.expr = ast.Call(ast.Name(MADE, ast.Load()), [given], [])
        body.append(ast.Assign([ast.Name(MADE, ast.Store())], made_now))
    elif name is not None:
        body.append(ast.Assign([ast.Name(MADE, ast.Store())], ast.Name(name, ast.Load())))
    return ast.unparse(ast.fix_missing_locations(ast.Module(body, []))) + "\n"
