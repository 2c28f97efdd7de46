"""The check that a function's body is empty, so that the model writes it."""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
from types import CodeType, FunctionType

from agex.errors import DefinitionError

__all__ = ["require_empty_body"]


def require_empty_body(function: object) -> FunctionType:
    """Return *function* if it is a plain function whose body is empty.

    Empty is a docstring, ``pass``, ``...`` or ``raise NotImplementedError``, and nothing else. The code
    object decides; where there is source, it also tells ``return None`` from nothing.

    Raises:
        DefinitionError: it is something else, or it has a body.
    """
    if not isinstance(function, FunctionType):
        raise DefinitionError(
            f"a task is made from a plain function, got {type(function).__name__}; write\n"
            "    @agent.task\n    def name(x: int) -> str: ..."
        )
    if function.__name__ == "<lambda>":
        raise DefinitionError("a lambda cannot be a task: write `def name(x: int) -> str: ...`")
    if not _is_empty_code(function.__code__):
        raise DefinitionError(_has_body(function, _first_statement(function)))
    statement = _first_statement(function)
    if statement is not None:
        raise DefinitionError(_has_body(function, statement))
    return function


def _has_body(function: FunctionType, statement: str | None) -> str:
    shown = f": `{statement}`" if statement else ""
    code = function.__code__
    return (
        f"the body of task {function.__name__!r} must be empty, the model writes it; found code{shown} "
        f"({code.co_filename}, line {code.co_firstlineno}).\n"
        "Leave a docstring, `pass`, `...` or `raise NotImplementedError`:\n"
        f"    def {function.__name__}(...) -> ...:\n"
        '        """What it does."""'
    )


def _is_empty_code(code: CodeType) -> bool:
    return _instructions(code) in _EMPTY


def _instructions(code: CodeType) -> list[tuple[str, object]]:
    # A `pass` after a docstring leaves a NOP that stands for its line. The text of an error may be any.
    return [
        (i.opname, "" if isinstance(i.argval, str) and i.opname == "LOAD_CONST" else i.argval)
        for i in dis.get_instructions(code)
        if i.opname != "NOP"
    ]


def _compiled(source: str) -> list[tuple[str, object]]:
    module = compile(source, "<empty>", "exec")
    return next(_instructions(const) for const in module.co_consts if isinstance(const, CodeType))


_BODIES = ("...", "raise NotImplementedError", "raise NotImplementedError()", "raise NotImplementedError('')")
_EMPTY = [_compiled(f"{kind} f(): {body}") for kind in ("def", "async def") for body in _BODIES]


def _first_statement(function: FunctionType) -> str | None:
    """Return the first statement that is not empty, None when there is none or no source."""
    definition = _definition(function)
    for statement in definition.body if definition else ():
        if not _is_nothing(statement):
            return ast.unparse(statement).splitlines()[0]
    return None


def _definition(function: FunctionType) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    try:
        # The code object, not the function: `__wrapped__` could point elsewhere.
        tree = ast.parse(textwrap.dedent(inspect.getsource(function.__code__)))
    except (OSError, SyntaxError):
        return None
    first = tree.body[0] if tree.body else None
    if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef) and first.name == function.__name__:
        return first
    return None


def _is_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass | ast.Raise):
        return True  # the code object has shown which error it raises
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return statement.value.value is ... or isinstance(statement.value.value, str)
