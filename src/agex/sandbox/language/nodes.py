"""Builders of the nodes that the transformer adds, each at the position of the node that it replaces."""

from __future__ import annotations

import ast
import builtins
import functools
from typing import Any, NamedTuple, TypeVar

__all__ = [
    "ITSELF",
    "LOAD",
    "Look",
    "at",
    "call",
    "imported",
    "imports",
    "is_docstring",
    "is_future",
    "is_narrow",
    "is_plain_member",
    "is_super",
    "know",
    "let_stop",
    "listing",
    "look",
    "look_ahead",
    "look_once",
    "no_arguments",
    "parameters",
    "prelude_length",
    "shared",
    "stop_before",
    "stop_check",
    "stop_condition",
    "take",
    "text",
    "trust_super",
]

N = TypeVar("N", bound=ast.AST)

LOAD = ast.Load()
_STORE = ast.Store()
_AND, _IN, _IS, _NOT, _OR = ast.And(), ast.In(), ast.Is(), ast.Not(), ast.Or()


def at(node: Any) -> Any:
    """Return the position of *node*, as keyword arguments for a node in its place."""
    return {
        "lineno": node.lineno,
        "col_offset": node.col_offset,
        "end_lineno": node.end_lineno,
        "end_col_offset": node.end_col_offset,
    }


def _new(kind: type[N], here: dict[str, int], /, **fields: Any) -> N:
    """Build a node. The constructor, which checks each field, takes more than twice as long."""
    node: N = _unmade(kind)
    fields.update(here)
    node.__dict__ = fields
    return node


_unmade: Any = ast.AST.__new__


def shared(name: str) -> ast.Name:
    """Build the load of a helper. It cannot fail, so it needs no line: one node serves many places."""
    return ast.Name(name, LOAD, lineno=-1, col_offset=-1, end_lineno=-1, end_col_offset=-1)


_helper = functools.cache(shared)


def text(value: str, node: Any) -> ast.Constant:
    """Build a string constant."""
    return _new(ast.Constant, at(node), value=value, kind=None)


def call(helper: str, node: Any, *args: ast.expr) -> ast.Call:
    """Build a call of a helper."""
    return _call(helper, at(node), *args)


def _call(helper: str, here: dict[str, int], *args: ast.expr) -> ast.Call:
    return _new(ast.Call, here, func=_helper(helper), args=[*args], keywords=[])


def _name(name: str, context: ast.expr_context, here: dict[str, int]) -> ast.Name:
    return _new(ast.Name, here, id=name, ctx=context)


def parameters(args: ast.arguments) -> list[ast.arg]:
    """Return the parameters of a signature, in the order in which CPython evaluates their annotations."""
    starred, named = args.vararg, args.kwarg
    if starred is None and named is None and not args.posonlyargs and not args.kwonlyargs:
        return args.args
    given = (*args.posonlyargs, *args.args, starred, *args.kwonlyargs, named)
    return [arg for arg in given if arg is not None]


def imported(node: ast.stmt) -> list[str]:
    """Return the names that a statement ``from ... import`` binds; none for any other."""
    return [alias.asname or alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []


ITSELF = "module!"
"""The name imported from a module that stands for the module itself."""


def imports(node: ast.Import) -> list[ast.stmt]:
    """Return an ``import`` as statements that read no module from another one.

    ``import a.b as c`` does: where the module ``a`` has no ``b``, the interpreter reads ``sys.modules``.
    """
    if not any(alias.asname and "." in alias.name for alias in node.names):
        return [node]
    here, out = at(node), list[ast.stmt]()
    for alias in node.names:
        if alias.asname and "." in alias.name:
            asked = ast.alias(ITSELF, alias.asname, **at(alias))
            out.append(ast.ImportFrom(alias.name, [asked], 0, **here))
        else:
            out.append(ast.Import([alias], **here))
    return out


def no_arguments() -> ast.arguments:
    """Build the signature of a function without parameters."""
    return ast.arguments([], [], None, [], [], None, [])


def stop_check(node: Any) -> ast.stmt:
    """Build ``if stop!: raise Stop!`` at the position of *node*."""
    here = at(node)
    stop = _new(ast.Raise, here, exc=_helper("Stop!"), cause=None)
    return _new(ast.If, here, test=_helper("stop!"), body=[stop], orelse=[])


def let_stop(function: ast.FunctionDef | ast.AsyncFunctionDef, *, is_listed: bool) -> None:
    """List a function before any other decorator sees it, or add a stop check to it."""
    if is_listed:
        function.decorator_list.append(_new(ast.Name, at(function), id="listed!", ctx=LOAD))
    else:
        function.body.insert(1 if is_docstring(function.body[0]) else 0, stop_check(function))


def stop_before(value: ast.expr, node: Any) -> ast.IfExp:
    """Build ``(trip!() if stop! else value)`` at the position of *node*."""
    here = at(node)
    return _new(ast.IfExp, here, test=_helper("stop!"), body=_call("trip!", here), orelse=value)


def stop_condition(node: Any) -> ast.BoolOp:
    """Build ``(not stop! or trip!())`` at the position of *node*."""
    here = at(node)
    running = _new(ast.UnaryOp, here, op=_NOT, operand=_helper("stop!"))
    return _new(ast.BoolOp, here, op=_OR, values=[running, _call("trip!", here)])


class Look(NamedTuple):
    """A guard: the type of the receiver is in the set *trusted*, or *check* is called with it and *name*."""

    trusted: str
    check: str
    name: str


def look(receiver: ast.expr, node: ast.Attribute, asks: Look) -> ast.IfExp:
    """Build ``(r if type!(r) in trusted else check(r, name))`` at the position of *node*."""
    here = at(node)
    return _guard(_is_trusted(receiver, asks.trusted, here), receiver, asks, here)


def look_once(receiver: ast.expr, node: ast.Attribute, asks: Look) -> ast.IfExp:
    """Build the same with the receiver kept in the temporary ``tmp!`` of the function."""
    here = at(node)
    taken = _new(ast.NamedExpr, here, target=_name("tmp!", _STORE, here), value=receiver)
    return _guard(_is_trusted(taken, asks.trusted, here), _name("tmp!", LOAD, here), asks, here)


def know(flag: ast.expr, receiver: ast.expr, node: ast.Attribute, asks: Look) -> ast.IfExp:
    """Build the same with the answer read from a variable."""
    return _guard(flag, receiver, asks, at(node))


def _guard(test: ast.expr, receiver: ast.expr, asks: Look, here: dict[str, int]) -> ast.IfExp:
    asked = _call(asks.check, here, receiver, _new(ast.Constant, here, value=asks.name, kind=None))
    return _new(ast.IfExp, here, test=test, body=receiver, orelse=asked)


def look_ahead(node: ast.stmt, trusted: str, name: str, flag: str) -> ast.stmt:
    """Build ``flag = type!(name) in trusted`` at the position of *node*."""
    here = at(node)
    return _assign(flag, _is_trusted(_name(name, LOAD, here), trusted, here), here)


def take(node: ast.stmt, trusted: str, name: str, taken: str) -> ast.stmt:
    """Build ``taken = name if type!(name) in trusted else asked!(name)`` at the position of *node*."""
    here = at(node)
    receiver = _name(name, LOAD, here)
    test, asked = _is_trusted(receiver, trusted, here), _call("asked!", here, receiver)
    return _assign(taken, _new(ast.IfExp, here, test=test, body=receiver, orelse=asked), here)


def _assign(name: str, value: ast.expr, here: dict[str, int]) -> ast.Assign:
    return _new(ast.Assign, here, targets=[_name(name, _STORE, here)], value=value, type_comment=None)


def _is_trusted(receiver: ast.expr, trusted: str, here: dict[str, int]) -> ast.expr:
    kind = _call("type!", here, receiver)
    return _new(ast.Compare, here, left=kind, ops=[_IN], comparators=[_helper(trusted)])


def is_narrow(node: ast.ExceptHandler) -> bool:
    """Return whether, by its text, a handler catches nothing that must be checked first.

    Checked are interrupts of the host and, where the error gets a name, the AttributeError of a module that
    lacks a member here. Another name for BaseException could pass: the flag stops guest code, not the
    exception.
    """
    return _is_narrow(node.type, _WIDE if node.name is None else _WIDE_AND_NAMED)


def _is_narrow(node: ast.expr | None, wide: frozenset[str]) -> bool:
    if isinstance(node, ast.Tuple):
        return all(_is_narrow(each, wide) for each in node.elts)
    if isinstance(node, ast.Attribute):
        return node.attr[0].isupper() and node.attr not in wide
    return isinstance(node, ast.Name) and node.id[0].isupper() and node.id not in wide


def caught(node: ast.expr | None) -> ast.expr | None:
    """Make a handler catch the classes that its sealed stand-ins stand for.

    The interpreter does not ask them. A name is most often that of a class whose metaclass is ``type``, which
    is no stand-in.
    """
    if node is None or (isinstance(node, ast.Name) and node.id in _BUILTIN):
        return node
    if isinstance(node, ast.Tuple) and not any(isinstance(each, ast.Starred) for each in node.elts):
        node.elts = [kind for each in node.elts if (kind := caught(each)) is not None]
        return node
    here = at(node)
    asked = _call("catches!", here, node)
    if not isinstance(node, ast.Name):
        return asked
    kind = _call("type!", here, node)
    is_plain = _new(ast.Compare, here, left=kind, ops=[_IS], comparators=[_helper("type!")])
    return _new(ast.IfExp, here, test=is_plain, body=node, orelse=asked)


_BUILTIN = frozenset(name for name, value in vars(builtins).items() if isinstance(value, type))
_WIDE = frozenset({"BaseException", "BaseExceptionGroup", "KeyboardInterrupt"})
"""The names of classes that would catch a KeyboardInterrupt of the host."""
_WIDE_AND_NAMED = _WIDE | {"AttributeError", "Exception"}
"""With the names of classes that would catch the AttributeError of a module as well."""


def is_super(node: ast.expr) -> bool:
    """Return whether an expression reads ``super()``: ``super`` itself is checked when it runs."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def trust_super(guard: ast.IfExp) -> None:
    """Let a guard pass the super object of a guest object, whose ``__init__`` may be read."""
    here = at(guard)
    taken = guard.test
    assert isinstance(taken, ast.Compare)
    is_super = _new(ast.Compare, here, left=taken.left, ops=[_IS], comparators=[_helper("super!")])
    subject = _call("subject!", here, _name("tmp!", LOAD, here))
    guard.test = _new(ast.BoolOp, here, op=_AND, values=[is_super, _is_trusted(subject, "own!", here)])


def is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is a string by itself."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_plain_member(node: ast.stmt) -> bool:
    """Return whether a statement of a class body, rewritten, uses no helper in the scope of the class."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        signature = node.args
        notes = [parameter.annotation for parameter in parameters(signature)]
        decorators = [each for each in node.decorator_list if not _is_listing(each)]
        parts = [*decorators, *signature.defaults, *signature.kw_defaults, *notes, node.returns]
        return all(map(_is_plain, parts)) and not getattr(node, "type_params", None)
    if isinstance(node, ast.Assign):
        return _is_plain(node.value) and all(isinstance(target, ast.Name) for target in node.targets)
    return isinstance(node, ast.Pass) or is_docstring(node)


def listing(block: list[ast.stmt]) -> list[ast.stmt]:
    """Return the declaration for a class body of plain members: the helper that lists them is global."""
    functions = [each for each in block if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    is_needed = any(_is_listing(decorator) for each in functions for decorator in each.decorator_list)
    return [_new(ast.Global, at(block[0]), names=["listed!"])] if is_needed else []


def _is_listing(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "listed!"


def _is_plain(node: ast.expr | None) -> bool:
    while isinstance(node, ast.Attribute):  # a guarded receiver is none, and no name
        node = node.value
    return (
        node is None or isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and "!" not in node.id)
    )


def is_future(node: ast.stmt, feature: str) -> bool:
    """Return whether a statement imports *feature* from ``__future__``."""
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == feature for alias in node.names)
    )


def prelude_length(body: list[ast.stmt]) -> int:
    """Count the statements that must stay first: the docstring and the future imports."""
    count = 1 if body and is_docstring(body[0]) else 0
    while count < len(body):
        node = body[count]
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        count += 1
    return count
