"""CPython's own tests as guest code: adapt a module of the ``test`` package and run it, with and without the sandbox."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agex.sandbox import Limits, Policy, Sandbox, Session

HERE = Path(__file__).parent
PRELUDE = (HERE / "cpython_prelude.txt").read_text("utf-8")
SANDBOX = Sandbox(Policy.default(), limits=Limits(seconds=20, output_chars=100_000))
PROVIDED = {"unittest", "test", "inspect", "warnings"}


def source_of(module: str) -> str | None:
    """Give the text of a module of the interpreter's ``test`` package; None where it has none."""
    if importlib.util.find_spec("test") is None:
        return None
    root = Path(next(iter(importlib.util.find_spec("test").submodule_search_locations)))  # type: ignore[union-attr,arg-type]
    for path in (root / f"{module}.py", root / module / "__init__.py"):
        if path.exists():
            return path.read_text("utf-8")
    return None


def adapted(source: str) -> ast.Module:
    """Replace the imports that no guest has: by what the prelude gives, or by a stand-in."""
    tree = _Imports().visit(ast.parse(source))
    tree.body = [n for n in tree.body if not (isinstance(n, ast.If) and "__main__" in ast.unparse(n.test))]
    return ast.fix_missing_locations(tree)


class _Imports(ast.NodeTransformer):
    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:  # noqa: N802 - named by ast
        return [new for alias in node.names for new in _import(alias, None)] or [ast.Pass()]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:  # noqa: N802 - named by ast
        if node.module == "__future__":
            return node
        module = "." * node.level + (node.module or "")
        return [new for alias in node.names for new in _import(alias, module)] or [ast.Pass()]


def _import(alias: ast.alias, module: str | None) -> Iterator[ast.stmt]:
    name = alias.asname or alias.name.partition(".")[0]
    if module is None:
        if alias.name.partition(".")[0] in PROVIDED:
            return
        text = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
    elif (module == "test" and alias.name == "support") or (module == "unittest" and alias.name == "TestCase"):
        return
    elif module.startswith("test.support") and f"    {alias.name}" in PRELUDE:
        text = f"{name} = support.{alias.name}"
        yield from ast.parse(text).body
        return
    else:
        text = f"from {module} import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
    granted = not (module or alias.name).startswith(("test", "unittest")) and SANDBOX.exec(text).error is None
    yield from ast.parse(text if granted else f"{name} = Missing('{module or ''}.{alias.name}')").body


def without_refused(tree: ast.Module) -> ast.Module:
    """Replace every function whose text the sandbox refuses by one that says so."""
    tree = ast.parse(ast.unparse(tree))
    if _refusal(tree.body):
        tree.body = [new for node in tree.body for new in _without_refused(node)]
    return ast.fix_missing_locations(tree)


def _without_refused(node: ast.stmt) -> list[ast.stmt]:
    refusal = _refusal([node])
    if not refusal:
        return [node]
    if isinstance(node, ast.ClassDef):
        node.body = [new for inner in node.body for new in _without_refused(inner)] or [ast.Pass()]
        return [node] if not _refusal([node]) else []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if node.name in {"setUp", "tearDown", "setUpClass", "tearDownClass"}:
            return []
        stub = ast.parse(f"def {node.name}(*args, **kwargs): raise _Refused({refusal!r})").body
        return stub if not _refusal(stub) else []
    return []


def _refusal(nodes: list[ast.stmt]) -> str:
    """Give the message of the sandbox's refusal to compile some statements; nothing of them is run."""
    source = "if False:\n" + "\n".join("    " + line for line in ast.unparse(ast.Module(nodes, [])).splitlines())
    error = SANDBOX.exec(source if not _spans_lines(nodes) else _unrun(nodes)).error
    return "" if error is None else str(error).partition("; ")[0]


def _spans_lines(nodes: list[ast.stmt]) -> bool:
    return '"""' in ast.unparse(ast.Module(nodes, []))


def _unrun(nodes: list[ast.stmt]) -> str:
    # Indenting would change the text inside triple quotes; a refusal does not depend on it.
    branch = ast.If(ast.Constant(False), [n for n in nodes if not _is_future(n)] or [ast.Pass()], [])
    return ast.unparse(ast.fix_missing_locations(ast.Module([branch], [])))


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


class Native:
    """The program without the sandbox."""

    def __init__(self, tree: ast.Module) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__", "__doc__": None}
        with self._quiet():
            exec(compile(PRELUDE, "<prelude>", "exec", dont_inherit=True), self.names)
            exec(compile(ast.unparse(tree), "<module>", "exec", dont_inherit=True), self.names)

    @contextlib.contextmanager
    def _quiet(self) -> Iterator[None]:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield

    def methods(self) -> list[tuple[str, str]]:
        with self._quiet():
            return list(self.names["methods_of_tests"]())

    def outcome(self, class_: str, method: str) -> str:
        with self._quiet():
            try:
                return str(self.names["outcome_of"](class_, method))
            except BaseException as error:  # noqa: BLE001 - SystemExit and the like
                return f"{type(error).__name__}: {error}"


class Guest:
    """The program in the sandbox."""

    def __init__(self, tree: ast.Module) -> None:
        self.session: Session = SANDBOX.session()
        for text, name in ((PRELUDE, "<prelude>"), (ast.unparse(without_refused(tree)), "<module>")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = self.session.run(text, name)
            if result.error is not None:
                raise RuntimeError(f"{name} does not run in the sandbox\n{result.traceback}")

    def outcome(self, class_: str, method: str) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = self.session.run(f"outcome_of({class_!r}, {method!r})", "<run>")
        return str(result.value) if result.error is None else f"{type(result.error).__name__}: {result.error}"


def version() -> str:
    """Name the running interpreter, as the ledger does."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"
