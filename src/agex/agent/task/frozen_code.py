"""Code that solved a task as a Python module: the function, what it needs, and where it comes from."""

from __future__ import annotations

import ast
import builtins
import copy
import importlib.util
import inspect
import symtable
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from agex.agent.execution.grants import named_by
from agex.agent.execution.name_bindings import RESERVED
from agex.agent.registration import Registration
from agex.agent.task.annotation_source import annotation_source, public_place
from agex.agent.task.value_source import Imports, NotSource, source_of
from agex.contract import TaskSignature
from agex.errors import DefinitionError

if TYPE_CHECKING:
    from agex.agent.task.task import AnyTask

__all__ = ["FrozenModule"]

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_FUTURE = "from __future__ import annotations"
_EMPTY = {"list": 1, "set": 1, "dict": 2}
"""Containers, and how many types they are of."""


class FrozenModule:
    """The module of one solution.

    Args:
        task: the task that it solved.
        source: the code.

    Raises:
        DefinitionError: the code needs something that a module on its own has not.
    """

    def __init__(self, task: AnyTask[Any, Any], source: str) -> None:
        self._task = task
        self._signature: TaskSignature = task.definition.terms.signature
        self._source = source
        self._lines = source.splitlines()
        self._imports = Imports()
        body = ast.parse(source).body
        defined = [one for one in body if self._signature.name in _bound(one)]
        self._function = self._defined(defined[-1] if defined else None)
        others = [one for one in body if one not in defined]
        self._kept = [*_needed(others, _unannotated(self._function, self._signature)), self._function]
        self._require_plain_lines()
        self._annotate_empty()
        self._bind_rest()

    def text(self, provenance: str) -> str:
        """Return the module, with a docstring of this text."""
        kept = [one for one in self._kept if not isinstance(one, ast.Import | ast.ImportFrom)]
        body = ""
        for before, one in zip([None, *kept], kept, strict=False):
            is_apart = (
                before is None or _is_definition(before) or _is_definition(one) or one is self._function
            )
            body += ("" if before is None else "\n\n\n" if is_apart else "\n") + self._piece(one)
        head = [f'"""{_escaped(provenance)}\n"""', _FUTURE, self._import_lines()]
        return "\n\n".join(part for part in head if part) + "\n\n\n" + body + "\n"

    # -- what is needed ----------------------------------------------------------------------

    def _defined(self, found: ast.stmt | None) -> _Function:
        """Return the definition of the task's function."""
        name = self._signature.name
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
            return found
        match found:
            case ast.Assign(targets=[ast.Name()], value=ast.Lambda(args=args, body=result)):
                made = ast.FunctionDef(name=name, args=args, body=[ast.Return(result)], decorator_list=[])
                return ast.fix_missing_locations(ast.copy_location(made, found))
            case _:
                raise self._refused(f"it does not define {name} with def")

    def _require_plain_lines(self) -> None:
        """Write the code out anew, where statements share lines."""
        taken: set[int] = set()
        self._as_written = self._function in self._kept
        for one in self._kept:
            own = set(_lines_of(one))
            self._as_written = self._as_written and not own & taken
            taken |= own

    def _annotate_empty(self) -> None:
        """Say the types of empty containers, which a type checker cannot know."""
        others = [one for one in self._kept if one is not self._function]
        taken = {one.arg for one in _all_arguments(self._function.args)}
        found = [*_empty_ones(others, set()), *_empty_ones(self._function.body, taken)]
        for target, kind in sorted(found, key=lambda one: -one[0].col_offset):
            self._imports.name("typing", "Any")
            self._annotate(target, f"{kind}[{', '.join(['Any'] * _EMPTY[kind])}]")

    def _annotate(self, target: ast.Name, annotation: str) -> None:
        """Write an annotation behind a target, in the text and in the tree."""
        line = self._lines[target.lineno - 1].encode()
        cut = target.end_col_offset or 0
        self._lines[target.lineno - 1] = (line[:cut] + f": {annotation}".encode() + line[cut:]).decode()
        target.id = f"{target.id}: {annotation}"  # only to be written out: `unparse` writes a name as it is

    def _bind_rest(self) -> None:
        """Import the names that the code takes from its surroundings."""
        bound = {name for one in self._kept for name in _bound(one)}
        for one in self._kept:
            if isinstance(one, ast.Import | ast.ImportFrom):
                self._require_module(one)
        known = {*bound, *self._imports.names, self._signature.name, *vars(builtins)}
        for name in sorted(_free(map(self._bare, self._kept)) - known):
            self._import(name)

    def _bare(self, statement: ast.stmt) -> ast.stmt:
        """Return the task's function without the annotations that the task's own replace."""
        return _unannotated(self._function, self._signature) if statement is self._function else statement

    def _require_module(self, statement: ast.Import | ast.ImportFrom) -> None:
        """Refuse an import of something that no other program has; spell a registered name as others do."""
        registered = {one.name: one.target.__name__ for one in self._registrations() if one.kind == "module"}
        names = [statement] if isinstance(statement, ast.ImportFrom) else statement.names
        for one in names:
            said = (one.module or "") if isinstance(one, ast.ImportFrom) else one.name
            real = registered.get(said, said)
            if not _exists(real):
                raise self._refused(f"it imports {said!r}, which no other program can import")
            if real != said and isinstance(one, ast.ImportFrom):
                one.module = real
            elif real != said and isinstance(one, ast.alias):
                one.name, one.asname = real, one.asname or said

    def _registrations(self) -> tuple[Registration, ...]:
        return self._task.agent.registrations

    def _import(self, name: str) -> None:
        registration = next((one for one in self._registrations() if one.name == name), None)
        if registration is not None and registration.acts:
            raise self._refused(f"it calls {name}, which acts on the world: it would not be journalled")
        named = {said: thing for said, (thing, _) in named_by(self._signature).items()}
        if registration is not None:
            named[name] = registration.target
        if name not in named:
            where = "only an agent's code has" if name in RESERVED else "is a variable beside the code"
            raise self._refused(f"it uses {name}, which {where}")
        place = public_place(named[name]) or self._place_in_task_module(named[name])
        if place is None:
            raise self._refused(f"it uses {name}, which is at the top level of no module")
        self._imports.name(*place, alias=name)

    def _place_in_task_module(self, target: Any) -> tuple[str, str] | None:
        module = sys.modules.get(self._task.__module__)
        found = (name for name, value in vars(module).items() if value is target) if module else iter(())
        name = next(found, None)
        return None if name is None else (self._task.__module__, name)

    def _refused(self, why: str) -> DefinitionError:
        return DefinitionError(f"The code that solved task {self._signature.name!r} cannot be frozen: {why}.")

    # -- the text ----------------------------------------------------------------------------

    def _import_lines(self) -> str:
        own = [one for one in self._kept if isinstance(one, ast.Import | ast.ImportFrom)]
        lines = {line for one in own for line in _import_texts(one)} | set(self._imports.lines())
        lines.discard(_FUTURE)
        groups: dict[bool, list[str]] = {True: [], False: []}
        for line in sorted(lines, key=lambda line: (line.startswith("from "), line)):
            groups[line.split()[1].partition(".")[0] in sys.stdlib_module_names].append(line)
        return "\n\n".join("\n".join(group) for group in groups.values() if group)

    def _piece(self, statement: ast.stmt) -> str:
        if statement is self._function:
            return self._function_text()
        return self._own_text(statement) if self._as_written else ast.unparse(statement)

    def _own_text(self, statement: ast.stmt) -> str:
        lines = _lines_of(statement)
        return "\n".join(self._lines[self._with_comments(lines[0]) - 1 : lines[-1]])

    def _with_comments(self, line: int) -> int:
        """Return the first line of the comments right above a line; the line itself, without any."""
        while line > 1 and self._lines[line - 2].lstrip().startswith("#"):
            line -= 1
        return line

    def _function_text(self) -> str:
        function = self._function
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        head = [f"@{ast.unparse(one)}" for one in function.decorator_list]
        kind = "async def" if isinstance(function, ast.AsyncFunctionDef) else "def"
        head.append(f"{kind} {self._signature.name}({self._parameters()}) -> {self._returned()}:")
        if self._signature.doc:
            doc = _escaped(self._signature.doc)
            head.append(textwrap.indent(f'"""{doc}\n"""' if "\n" in doc else f'"""{doc}"""', "    "))
        return "\n".join([*head, textwrap.indent(self._body_text(body), "    ")])

    def _body_text(self, body: list[ast.stmt]) -> str:
        """Return the statements as they are written, without their indentation."""
        if not body:
            return "pass"
        function = self._function
        first = body[0].lineno
        header = function.body[0].lineno if body is not function.body else function.lineno
        if not self._as_written or first <= header or _has_lines_of_strings(body):
            return "\n".join(map(ast.unparse, body))
        return textwrap.dedent("\n".join(self._lines[self._with_comments(first) - 1 : function.end_lineno]))

    def _parameters(self) -> str:
        """Return the parameters of the code's function, with annotations and defaults of the task."""
        try:
            return ast.unparse(_annotated(self._function.args, self._annotations(), self._defaults()))
        except NotSource as error:
            raise self._refused(str(error)) from error

    def _returned(self) -> str:
        return self._annotation("return")

    def _annotation(self, name: str) -> str:
        try:
            return annotation_source(self._signature.checker(name).annotation, self._imports)
        except NotSource as error:
            raise self._refused(f"its type of {name} has no source: {error}") from error

    def _annotations(self) -> dict[str, str]:
        return {name: self._annotation(name) for name in self._signature.parameters}

    def _defaults(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, one in self._signature.parameters.items():
            if one.default is inspect.Parameter.empty:
                continue
            try:
                found[name] = source_of(one.default, self._imports)
            except NotSource as error:
                raise self._refused(f"the default of {name} has no source: {error}") from error
        return found


def _needed(body: list[ast.stmt], function: _Function) -> list[ast.stmt]:
    """Return the statements that the function needs, in their order."""
    wanted: set[int] = set()
    names = _free([function])
    while True:
        variables = {name for at in wanted for name in _bound(body[at]) if not _is_definition(body[at])}
        found = {at for at, one in enumerate(body) if _bound(one) & names or _changes(one, variables)}
        if found <= wanted:
            return [body[at] for at in sorted(wanted)]
        wanted |= found
        names |= _free(body[at] for at in wanted)


def _is_definition(statement: ast.stmt) -> bool:
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(statement, kinds)


def _changes(statement: ast.stmt, variables: set[str]) -> bool:
    """Return whether a statement may change one of these variables in place."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))) | ast.Expr(value=ast.Name()):
            return False
        case _:
            return not _is_definition(statement) and bool(_free([statement]) & variables)


def _free(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names that statements take from their module."""
    return {name for one in statements for name in _globals_of(_table(one))}


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of a module binds."""
    symbols = _table(statement).get_symbols()
    return {one.get_name() for one in symbols if one.is_assigned() or one.is_imported() or one.is_namespace()}


def _table(statement: ast.stmt) -> symtable.SymbolTable:
    return symtable.symtable(ast.unparse(statement), "<frozen>", "exec")


def _globals_of(table: symtable.SymbolTable) -> Iterator[str]:
    is_module = table.get_type() == "module"
    for one in table.get_symbols():
        if one.is_referenced() and (is_module or one.is_global()):
            yield one.get_name()
    for child in table.get_children():
        yield from _globals_of(child)


def _empty_ones(body: list[ast.stmt], taken: set[str]) -> Iterator[tuple[ast.Name, str]]:
    """Yield the variables of a scope that begin as an empty container, and its class."""
    own = list(_own_statements(body))
    seen = taken | {name for one in own if isinstance(one, ast.Global | ast.Nonlocal) for name in one.names}
    for one in own:
        name = _assigned(one)
        if name is None or name in seen:
            continue
        seen.add(name)
        match one:
            case ast.Assign(targets=[ast.Name() as target], value=value) if (
                kind := _empty(value)
            ) is not None:
                yield target, kind
            case _:
                pass


def _own_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a scope, in their order, without those of functions and classes in it."""
    for one in body:
        yield one
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _own_statements(_inner(one))


def _inner(statement: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def _assigned(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return None


def _empty(value: ast.expr) -> str | None:
    """Return the class of an empty container; None for another value."""
    match value:
        case ast.List(elts=[]):
            return "list"
        case ast.Dict(keys=[]):
            return "dict"
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[]) if name in _EMPTY:
            return name
        case _:
            return None


def _lines_of(statement: ast.stmt) -> range:
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(one.lineno for one in decorators)])
    return range(first, (statement.end_lineno or first) + 1)


def _has_lines_of_strings(body: Iterable[ast.stmt]) -> bool:
    """Return whether a string goes over several lines, whose indentation is a part of it."""
    texts = (node for one in body for node in ast.walk(one) if isinstance(node, ast.Constant | ast.JoinedStr))
    return any(node.lineno != node.end_lineno for node in texts)


def _unannotated(function: _Function, signature: TaskSignature) -> _Function:
    made = copy.deepcopy(function)
    made.returns = None
    for one in _all_arguments(made.args):
        if one.arg in signature.parameters:
            one.annotation = None
    return made


def _all_arguments(args: ast.arguments) -> list[ast.arg]:
    further = [one for one in (args.vararg, args.kwarg) if one is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *further]


def _annotated(
    args: ast.arguments, annotations: Mapping[str, str], defaults: Mapping[str, str]
) -> ast.arguments:
    """Return parameters with annotations and defaults of the task.

    Raises:
        NotSource: a parameter without a default would follow one with a default.
    """
    made = copy.deepcopy(args)
    placed = [*made.posonlyargs, *made.args]
    own: list[ast.expr | None] = [None] * (len(placed) - len(made.defaults))
    found = [_default(one, defaults, old) for one, old in zip(placed, [*own, *made.defaults], strict=True)]
    made.defaults = [each for each in found if each is not None]
    if None in found[len(found) - len(made.defaults) :]:
        raise NotSource("its parameters are in another order than the task's, and some have defaults")
    made.kw_defaults = [
        _default(one, defaults, old) for one, old in zip(made.kwonlyargs, made.kw_defaults, strict=True)
    ]
    for one in _all_arguments(made):
        if one.arg in annotations:
            one.annotation = ast.parse(annotations[one.arg], mode="eval").body
    return made


def _default(one: ast.arg, defaults: Mapping[str, str], own: ast.expr | None) -> ast.expr | None:
    return ast.parse(defaults[one.arg], mode="eval").body if one.arg in defaults else own


def _import_texts(statement: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(statement, ast.ImportFrom):
        return [ast.unparse(statement)]
    return [ast.unparse(ast.Import([one])) for one in statement.names]


def _exists(module: str) -> bool:
    """Return whether a program can import a module, without importing it."""
    if module in sys.modules:
        return True
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
