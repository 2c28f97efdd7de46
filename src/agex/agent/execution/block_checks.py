"""Checks of a program before any of it runs: imports that are refused, names that are nowhere, wrong calls.

A program that fails half-way may have acted already. So the errors that its text shows are told before it
runs, all in one message. Only what is certain counts: a statement that runs whatever the data is, and a name
that nothing can bind. A program that would run to its end is never refused here.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from agex._interpreter import syntax_trees
from agex.agent.execution.name_bindings import bindings_in, may_bind_unsaid
from agex.agent.prompt.library_names import ALIASES
from agex.agent.prompt.listing import signature_text
from agex.agent.registration import Registration
from agex.errors import EvalError
from agex.escaping import line

if TYPE_CHECKING:
    from agex.sandbox import Policy

__all__ = ["ENDINGS", "BlockChecks", "Names", "hides_ending"]

Names: TypeAlias = Callable[[], Collection[str]]
"""Gives the variables of guest code."""

ENDINGS = frozenset(
    {"task_success", "task_fail", "task_clarify", "final_answer", "exit", "quit", "SystemExit"}
)
"""Names by which a program ends before its last line."""
MOST_PROBLEMS = 12

_WRITES_MODULES = re.compile(r"\.py\b|extract|unpack|sys\.(modules|path)|exec|import_module|__import__")
"""Text of a program that may make the modules it imports."""


class Problem(NamedTuple):
    """One error that the text of a program shows."""

    lineno: int
    text: str


@dataclass(frozen=True, kw_only=True)
class BlockChecks:
    """The checks of the programs of one task.

    Args:
        policy: the grants; None where code runs unguarded, and imports what is installed.
        functions: what a program can call by name, and how.
        modules: modules that code has beside the grants: those over its workspace.
        registered: the names under which modules were registered.
        objects: the names under which live objects were registered.
        own_module: returns whether the workspace has a module; None where there is no workspace.
    """

    policy: Policy | None = None
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    modules: Collection[str] = ()
    registered: Collection[str] = ()
    objects: Collection[str] = ()
    own_module: Callable[[str], bool] | None = None

    @classmethod
    def of(
        cls,
        registrations: Iterable[Registration],
        policy: Policy | None,
        own_module: Callable[[str], bool] | None = None,
    ) -> BlockChecks:
        """Return the checks for what an agent has registered."""
        known = tuple(registrations)
        return cls(
            policy=policy,
            functions={one.name: one.target for one in known if one.kind in {"function", "task"}},
            modules=() if own_module is None else _modules_over_files(),
            registered=[one.name for one in known if one.kind == "module"],
            objects=[one.name for one in known if one.kind == "object"],
            own_module=own_module,
        )

    # -- imports that go without saying --------------------------------------------------------

    @functools.cached_property
    def _importable(self) -> dict[str, str]:
        """Return the names that stand for modules without an import, each with the import it is short for."""
        granted = [] if self.policy is None else self.policy.modules.keys()
        aliases = {
            alias: name for name, alias in ALIASES.items() if name in granted or name in self.registered
        }
        found = {alias: f"import {name} as {alias}" for alias, name in aliases.items()}
        return found | {name.partition(".")[0]: f"import {name}" for name in self.registered}

    def missing_imports(self, source: str, names: Names) -> str:
        """Return the imports of registered modules that a program uses and does not import itself."""
        offered = {name: text for name, text in self._importable.items() if name in source}
        tree = _parsed(source) if offered else None
        if tree is None:
            return ""
        bound = _bound_in(source)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & offered.keys() - bound
        here = _asked(names) if used else None
        return "" if here is None else "\n".join(offered[name] for name in sorted(used) if name not in here)

    def advice(self, traceback: str) -> str:
        """Return what to write where the error that ended a program is a module's name without its import."""
        last = traceback.rstrip().rpartition("\n")[2]
        found = re.match(r"NameError: name '(\w+)' is not defined", last)
        text = self._importable.get(found[1]) if found is not None else None
        return f"Note: the module is there; write: {text}" if text else ""

    # -- refusals ------------------------------------------------------------------------------

    def refusal(
        self, source: str, names: Names, given: Collection[str] = (), *, ends: bool = False
    ) -> str | None:
        """Return why a program may not run: the errors that its text shows; None where it shows none.

        Args:
            source: the program.
            names: gives the variables that there are when it begins; asked where there may be a problem.
            given: the names that it finds beside its variables.
            ends: whether a function that it may call ends the program, see `hides_ending`.
        """
        tree = _parsed(source)
        if tree is None:
            return None  # running it says why
        run = _Certain(ends=ends or hides_ending(source))
        try:
            run.read(tree.body)
        except RecursionError:
            return None
        imports = self._refused_imports(tree, run, source)
        undefined = self._undefined(run, source, names, given)
        problems = [*imports, *undefined, *self._wrong_calls(run, source, names)]
        if not problems:
            return None
        told = [f"{line(text)} (line {number})" for number, text in sorted({*problems})]
        more = [f"... and {len(told) - MOST_PROBLEMS} more"] if len(told) > MOST_PROBLEMS else []
        return "\n".join(["Nothing of this code was run:", *told[:MOST_PROBLEMS], *more])

    def _refused_imports(self, tree: ast.Module, run: _Certain, source: str) -> list[Problem]:
        """Return the imports that are refused: all of the program, if one is certain to run."""
        policy, own = self.policy, self.own_module
        if policy is None or (own is not None and _WRITES_MODULES.search(source)):
            return []
        from agex.sandbox.policy.import_checks import refused_import

        def refused(node: ast.stmt) -> Iterator[Problem]:
            for name, members in _imported(node):
                text = refused_import(policy, name, members, others=self.modules)
                if name in self.objects:
                    text = (
                        f"'{name}' is no module but an object that is here already: use it without an import"
                    )
                if text is not None and not (own is not None and own(name)):
                    yield Problem(node.lineno, f"SandboxImportError: {text}")

        if not any(True for node in run.imports for _ in refused(node)):
            return []
        return [problem for node in _untried(tree) for problem in refused(node)]

    def _undefined(self, run: _Certain, source: str, names: Names, given: Collection[str]) -> list[Problem]:
        if self.policy is None or may_bind_unsaid(source) or "setattr" in source:
            return []  # unguarded code may have bound names anywhere, in the builtins too
        bound = _bound_in(source) | self._importable.keys() | {*given}
        used = [each for each in run.names if each.id not in bound and not hasattr(builtins, each.id)]
        used = [each for each in used if not each.id.startswith("__")]
        here = _asked(names) if used else None
        if here is None:
            return []
        known = {*here, *bound}
        return [_not_defined(each, known) for each in used if each.id not in here]

    def _wrong_calls(self, run: _Certain, source: str, names: Names) -> list[Problem]:
        bound = _bound_in(source) if run.calls else frozenset()
        callable_here = self.functions.keys() - bound
        calls = [(name, each, self.functions[name]) for name, each in run.calls if name in callable_here]
        found = [(*call, problem) for call in calls if (problem := _unbindable(*call[1:]))]
        here = _asked(names) if found else None
        return [
            Problem(each.lineno, f"TypeError: {name}() {problem}; it is {name}{signature_text(target)}")
            for name, each, target, problem in found
            if here is not None and name not in here
        ]


def _modules_over_files() -> frozenset[str]:
    from agex.files.stdlib_modules import FileModules

    return FileModules.names | {"pathlib"}


@functools.lru_cache(maxsize=4)
def _parsed(source: str) -> ast.Module | None:
    """Return the syntax tree, which nobody changes; None for what is no program."""
    try:
        return syntax_trees.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def hides_ending(source: str) -> bool:
    """Return whether a function or class that a program defines may end the program that calls it."""
    may = any(name in source for name in ENDINGS) and any(
        each in source for each in ("def", "class", "lambda")
    )
    tree = _parsed(source) if may else None
    return tree is not None and any(
        _may_end(each) for each in ast.walk(tree) if isinstance(each, _DEFINITIONS)
    )


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@functools.lru_cache(maxsize=4)
def _bound_in(source: str) -> frozenset[str]:
    """Return the names that a program binds or deletes, in whatever scope."""
    tree = _parsed(source)
    return frozenset() if tree is None else frozenset(each.name for each in bindings_in(tree))


def _asked(names: Names) -> Collection[str] | None:
    """Return the names that are bound; None where the place that has them is gone."""
    try:
        return names()
    except EvalError:
        return None


def _imported(node: ast.stmt) -> Iterator[tuple[str, list[str]]]:
    """Yield the modules of an import statement, each with the members that it asks for."""
    if isinstance(node, ast.Import):
        yield from ((each.name, []) for each in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module and node.module != "__future__":
        yield node.module, [each.name for each in node.names]


def _untried(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the import statements of a program, without those whose failure it is ready for."""
    rest = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        if isinstance(node, ast.Try | ast.TryStar | ast.With | ast.AsyncWith):
            continue
        rest.extend(ast.iter_child_nodes(node))


def _not_defined(node: ast.Name, known: Collection[str]) -> Problem:
    import difflib

    close = difflib.get_close_matches(node.id, known, n=1, cutoff=0.75)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return Problem(node.lineno, f"NameError: name {node.id!r} is not defined{hint}")


def _unbindable(call: ast.Call, target: Callable[..., Any]) -> str:
    """Return why a call does not fit a function; empty where it may."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(
        each.arg is None for each in call.keywords
    ):
        return ""
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return ""
    try:
        signature.bind(*call.args, **{str(each.arg): None for each in call.keywords})
    except TypeError as error:
        return str(error)
    return ""


class _Certain:
    """The certain acts of a program, whatever its data is: reads of names, calls and imports.

    Attributes:
        names: reads of plain names.
        calls: calls of plain names.
        imports: import statements.
    """

    def __init__(self, *, ends: bool) -> None:
        self.names: list[ast.Name] = []
        self.calls: list[tuple[str, ast.Call]] = []
        self.imports: list[ast.stmt] = []
        self._ends = False
        self._call_may_end = ends

    def read(self, body: list[ast.stmt]) -> None:
        """Read statements, up to the first that may be the last one to run."""
        for statement in body:
            self._statement(statement)
            if self._ends:
                return

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imports.append(node)
        for name in _EVALUATED.get(type(node), ()):
            found = getattr(node, name)
            self._all(found if isinstance(found, list) else filter(None, [found]))
        if isinstance(node, ast.With | ast.AsyncWith):
            self._expression(node.items[0].context_expr)
        if isinstance(node, _COMPOUND):
            self._ends = self._ends or _may_end(node) or (self._call_may_end and _calls(node))
        self._ends = self._ends or isinstance(node, ast.Raise)

    def _all(self, expressions: Iterable[ast.expr]) -> None:
        for each in expressions:
            self._expression(each)

    def _expression(self, node: ast.AST) -> None:
        """Read an expression in about the order it is evaluated, without the parts that may not be."""
        if self._ends:
            return
        match node:
            case ast.Name(ctx=ast.Load()):
                self.names.append(node)
            case ast.Lambda() | ast.Constant():
                pass
            case ast.BoolOp(values=values):
                self._expression(values[0])
            case ast.IfExp(test=test):
                self._expression(test)
            case ast.Compare(left=left, comparators=comparators):
                self._all([left, comparators[0]])
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._expression(node.generators[0].iter)
            case ast.Call(func=function):
                self._all([function, *node.args, *(each.value for each in node.keywords)])
                if isinstance(function, ast.Name) and not self._ends:
                    self.calls.append((function.id, node))
                if _is_end(function) or self._call_may_end:
                    self._ends = True
            case _:
                for child in ast.iter_child_nodes(node):
                    self._expression(child)


_EVALUATED: dict[type[ast.stmt], tuple[str, ...]] = {
    ast.Expr: ("value",),
    ast.Assign: ("value", "targets"),
    ast.AugAssign: ("value", "target"),
    ast.AnnAssign: ("value",),
    ast.FunctionDef: ("decorator_list",),
    ast.AsyncFunctionDef: ("decorator_list",),
    ast.ClassDef: ("decorator_list", "bases"),
    ast.If: ("test",),
    ast.While: ("test",),
    ast.For: ("iter",),
    ast.AsyncFor: ("iter",),
    ast.Match: ("subject",),
}
"""The parts of each statement that are evaluated whenever it runs."""
_COMPOUND = (
    *(ast.If, ast.While, ast.For, ast.AsyncFor, ast.Match),
    *(ast.With, ast.AsyncWith, ast.Try, ast.TryStar),
)


def _may_end(node: ast.AST) -> bool:
    """Return whether a part of a program may end all of it."""
    return any(map(_is_end, ast.walk(node)))


def _is_end(node: ast.AST) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in ENDINGS


def _calls(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Call) for each in ast.walk(node))
