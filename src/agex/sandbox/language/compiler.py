"""The compiler of guest code: parse, transform, compile, inspect, cache.

The inspection is independent of the transformer: every name in the finished code objects must be one that
`agex.sandbox.rules.names` allows guest code to use.
"""

from __future__ import annotations

import ast
import functools
import operator
import types
from typing import Any

from agex._interpreter import syntax_trees
from agex.errors import SandboxSyntaxError
from agex.sandbox.language.exec_namespaces import keep_equal
from agex.sandbox.language.transformer import rewrite, rewrite_expression
from agex.sandbox.rules import names as ledger
from agex.sandbox.rules.code_flags import CO_OPTIMIZED
from agex.sandbox.rules.ruleset import HELPERS, LISTS, Rules
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.kill_switch import bound

__all__ = ["compile_expression", "compile_module"]


def compile_module(
    source: str,
    filename: str,
    rules: Rules,
    *,
    echo: bool = True,
    flat: bool = False,
    top_level_await: bool = False,
    apart: bool = False,
) -> types.CodeType:
    """Compile a program for a session; *flat* for a single namespace, *apart* for a dict passed to ``exec``.

    Raises:
        SyntaxError: it is not Python.
        SandboxSyntaxError: something in it is not allowed.
    """
    return _compiled(source, filename, rules, echo, flat, top_level_await, apart)


@functools.lru_cache(maxsize=512)  # programs; a turn's code is a few kilobytes of bytecode
def _compiled(*program: Any) -> types.CodeType:
    # Without the collector: a tree holds no garbage, and looking for some took a sixth of the time.
    return syntax_trees.undisturbed(lambda: _compile(*program))


def _compile(  # noqa: PLR0917 - as the cache takes them
    source: str, filename: str, rules: Rules, echo: bool, flat: bool, top_level_await: bool, apart: bool
) -> types.CodeType:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if top_level_await else 0
    try:
        tree = compile(source, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        if apart:
            keep_equal(tree)
        rewrite(tree, rules, echo=echo, flat=flat)
        code: types.CodeType = compile(tree, filename, "exec", flags, dont_inherit=True)
    except RecursionError:  # trees of more than about 900 levels
        raise SandboxSyntaxError("the program is nested too deeply; split it into smaller parts") from None
    return _inspected(code, source)


def compile_expression(source: str, rules: Rules, *, apart: bool = False) -> types.CodeType:
    """Compile an expression for ``eval`` in guest code; *apart* for a dict passed to it."""
    tree = syntax_trees.parse_expression(source.strip(" \t"))
    if apart:
        keep_equal(tree)
    code: types.CodeType = compile(rewrite_expression(tree, rules), "<string>", "eval", dont_inherit=True)
    return _inspected(code, source)


_COMPILER = frozenset(
    {
        "__annotate__",
        "__classcell__",
        "__classdict__",
        "__classdictcell__",
        "__conditional_annotations__",
        "__future__",
    }
)
"""Names that the compiler itself puts into code."""
_GENERIC = "<generic parameters of "
"""The compiler's name for the code around a function or class with type parameters."""
_SAYABLE = _COMPILER | frozenset(HELPERS) | ledger.DUNDERS | ledger.DEFINABLE | ledger.NAMES | ledger.STORABLE


def _inspected(code: types.CodeType, source: str) -> types.CodeType:
    """Refuse code that uses a name not allowed in guest code; note the source of any other."""
    said: set[str] = set()
    noted = _noted(code, source, said)
    dunders = {name for name in said if name[:2] == "__" and ledger.is_dunder(name)}
    for name in sorted((dunders - _SAYABLE) | (ledger.DENIED & said)):
        raise SandboxSyntaxError(f"the name '{name}' is not available")
    return noted


def _noted(code: types.CodeType, source: str, said: set[str], *, is_inside: bool = False) -> types.CodeType:
    """Collect the names that code uses, and note its source.

    Functions outside of other functions are listed, and thus bound to this process.
    """
    said.update(code.co_names)
    is_function = bool(code.co_flags & CO_OPTIMIZED) and not code.co_name.startswith(_GENERIC)
    parts = constants = code.co_consts
    if types.CodeType in map(type, parts):
        is_inner = is_inside or is_function
        parts = tuple(
            [
                _noted(each, source, said, is_inside=is_inner) if type(each) is types.CodeType else each
                for each in parts
            ]
        )
    if LISTS and is_function and not is_inside:
        code = bound(code, parts)
    elif any(map(operator.is_not, parts, constants)):
        code = code.replace(co_consts=parts)
    provenance.note_source(code, source)
    return code
