"""CPython's own tests as guest code: adapt a module of the ``test`` package and run it, with and without the sandbox."""

from __future__ import annotations

import ast
import contextlib
import doctest
import enum
import importlib.util
import io
import re
import sys
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agex.errors import SandboxError
from agex.sandbox import Limits, Policy, Sandbox, Session

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
HERE = Path(__file__).parent
PRELUDE = (HERE / "cpython_prelude.txt").read_text("utf-8")


def _policy() -> Policy:
    """Grant the standard set, and what CPython's tests ask the interpreter about besides: it is theirs that is tested."""
    policy = Policy.default()
    policy.module(contextlib, exclude=("_*",))
    policy.module(enum, exclude=("_*",))
    policy.module(types, exclude=("_*", "CodeType", "FrameType", "TracebackType"))
    policy.module(sys, include=SYS)
    return policy


SYS = """
    byteorder exc_info exception flags float_info float_repr_style getdefaultencoding getrecursionlimit getrefcount
    getsizeof hash_info implementation int_info intern maxsize maxunicode platform version version_info
""".split()
SANDBOX = Sandbox(_policy(), limits=Limits(seconds=120, output_chars=100_000))
SANDBOX.exec("import collections.abc")  # what one session imports is seen by the next: the same for all
PROVIDED = {"unittest", "test", "inspect", "warnings"}


CORE = """
    test_asyncgen test_augassign test_binop test_bool test_builtin test_class test_compare test_contains
    test_contextlib test_coroutines test_dataclasses test_decorators test_descr test_dictcomps test_except_star
    test_exception_group test_exception_hierarchy test_exception_variations test_exceptions test_fstring
    test_funcattrs test_generator_stop test_generators test_genericclass test_grammar test_int_literal
    test_isinstance test_iter test_iterlen test_keywordonlyarg test_listcomps test_named_expressions test_opcodes
    test_patma test_positional_only_arg test_property test_raise test_richcmp test_scope test_setcomps test_slice
    test_subclassinit test_super test_syntax test_type_aliases test_type_annotations test_type_params test_typing
    test_unary test_unpack test_with test_yield_from
""".split()
"""Modules about the language: run always."""
LIBRARY = """
    test_abstract_numbers test_base64 test_baseexception test_bisect test_collections test_colorsys test_complex
    test_copy test_defaultdict test_deque test_dict test_dictviews test_difflib test_dynamicclassattribute test_enum
    test_enumerate test_eof test_errno test_float test_format test_fractions test_functools test_genericalias
    test_graphlib test_hash test_heapq test_html test_index test_int test_keyword test_list test_long
    test_numeric_tower test_operator test_pow test_pprint test_print test_range test_reprlib test_sort test_string
    test_struct test_structseq test_textwrap test_tuple test_unicode_identifiers test_urlparse test_userdict
    test_userlist
""".split()
"""Modules about builtin types and the standard set: run where ``AGEX_DIFFERENTIAL=all`` is set."""
DOCTESTS = """
    test_descrtut test_extcall test_generators test_genexps test_listcomps test_metaclass test_pep646_syntax
    test_setcomps test_syntax test_unpack test_unpack_ex
""".split()
"""Modules whose texts hold examples, each compared by what it prints, gives and raises."""
MODULES = [*CORE, *LIBRARY]


@dataclass(frozen=True)
class Comparison:
    """What came of the test methods of one module."""

    equal: frozenset[str]
    """They pass in the sandbox as they do without it."""
    differing: dict[str, str]
    """They pass without the sandbox and not in it; with the outcome there."""
    inapplicable: dict[str, str]
    """They do not pass without it either: the adapted module lacks something."""


def compare(source: str) -> Comparison:
    """Run a test module of CPython both ways."""
    native = Native(adapted(source))
    outcomes = {method: native.outcome(*method) for method in native.methods()}
    guest = Guest(native.body)
    inside = {method: guest.outcome(*method) for method, outcome in outcomes.items() if outcome == "passed"}
    return Comparison(
        frozenset(".".join(method) for method, outcome in inside.items() if outcome == "passed"),
        {".".join(method): outcome for method, outcome in inside.items() if outcome != "passed"},
        {".".join(method): outcome for method, outcome in outcomes.items() if outcome != "passed"},
    )


def compare_examples(source: str) -> Comparison:
    """Run the examples in the texts of a module both ways, each text in a namespace of its own."""
    equal: set[str] = set()
    differing: dict[str, str] = {}
    for node in ast.parse(source).body:
        text = getattr(getattr(node, "value", None), "value", None)
        if not isinstance(text, str) or ">>>" not in text:
            continue
        name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else "docstring"
        names: dict[str, Any] = {"__name__": "__main__", "__doc__": None}
        session = SANDBOX.session()
        for example in doctest.DocTestParser().get_examples(text):
            expected, actual = _example_native(example.source, names), _example_guest(example.source, session)
            where = f"{name}:{example.lineno + 1}"
            if expected == actual:
                equal.add(where)
            else:
                differing[where] = actual
    return Comparison(frozenset(equal), differing, {})


def _example_native(source: str, names: dict[str, Any]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
            last = tree.body[-1] if tree.body else None
            if isinstance(last, ast.Expr):
                tree.body.pop()
            exec(compile(tree, "<example>", "exec", dont_inherit=True), names)
            if isinstance(last, ast.Expr):
                value = eval(
                    compile(ast.Expression(last.value), "<example>", "eval", dont_inherit=True), names
                )
                out.write("" if value is None else repr(value))
        except Exception as error:  # noqa: BLE001 - the outcome compared
            out.write(f"{type(error).__name__}: {_message(error)}")
    return ADDRESS.sub("", out.getvalue())


def _example_guest(source: str, session: Session) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = session.run(source, "<example>")
    error = "" if result.error is None else f"{type(result.error).__name__}: {_message(result.error)}"
    if isinstance(result.error, SandboxError):
        return error
    return ADDRESS.sub("", f"{result.stdout}{result.echo or ''}{error}")


def _message(error: BaseException) -> str:
    return (
        str(error.msg)
        if type(error).__module__ == "builtins" and isinstance(error, SyntaxError)
        else str(error)
    )


def source_of(module: str) -> str | None:
    """Give the text of a module of the interpreter's ``test`` package; None where it has none."""
    if importlib.util.find_spec("test") is None:
        return None
    root = Path(next(iter(importlib.util.find_spec("test").submodule_search_locations)))  # type: ignore[union-attr,arg-type]
    for path in (root / f"{module}.py", root / module / "__init__.py"):
        if path.exists():
            return path.read_text("utf-8")
    return None


def adapted(source: str) -> list[ast.stmt]:
    """Replace the imports that no guest has, by what the prelude gives or by a stand-in; drop what builds on those."""
    imports = _Imports()
    tree = imports.visit(ast.parse(source))
    fresh = [ast.parse(f"import {name} as _fresh_{name}").body[0] for name in sorted(imports.fresh)]
    body = [node for node in tree.body if not _is_main(node) and not _builds_on(node, imports.missing)]
    return [ast.fix_missing_locations(node) for node in (*fresh, *body)]


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)


def _builds_on(node: ast.stmt, missing: set[str]) -> bool:
    if not isinstance(node, ast.ClassDef):
        return False
    return any(
        isinstance(part, ast.Name) and part.id in missing for base in node.bases for part in ast.walk(base)
    )


class _Imports(ast.NodeTransformer):
    def __init__(self) -> None:
        self.missing: set[str] = set()
        self.fresh: set[str] = set()

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.decorator_list = _usable(node.decorator_list)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = _usable(node.decorator_list)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node.func).endswith(("import_fresh_module", "import_module")) and node.args:
            name = getattr(node.args[0], "value", "")
            if name.isidentifier() and _is_granted(f"import {name}"):
                self.fresh.add(name)
                return ast.copy_location(ast.Name(f"_fresh_{name}", ast.Load()), node)
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [new for alias in node.names for new in self._import(alias, None)] or [ast.Pass()]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.module == "__future__":
            return node
        module = "." * node.level + (node.module or "")
        return [new for alias in node.names for new in self._import(alias, module)] or [ast.Pass()]

    def _import(self, alias: ast.alias, module: str | None) -> Iterator[ast.stmt]:
        name = alias.asname or alias.name.partition(".")[0]
        bound = f" as {alias.asname}" if alias.asname else ""
        if module is None:
            if alias.name.partition(".")[0] in PROVIDED - {"test"} or alias.name == "test.support":
                return
            text = f"import {alias.name}{bound}"
        elif f"{module}.{alias.name}" in {"test.support", "unittest.TestCase", "inspect.cleandoc"}:
            return
        elif module.startswith("test.support") and f"    {alias.name}" in PRELUDE:
            text = f"{name} = support.{alias.name}"
        elif module == "_testcapi" and f"{alias.name}," in PRELUDE:
            return
        else:
            text = f"from {module} import {alias.name}{bound}"
        if text.startswith(("import", "from")) and not _is_granted(text):
            self.missing.add(name)
            text = f"{name} = Missing({(module or '') + '.' + alias.name!r})"
        yield from ast.parse(text).body


def _is_granted(text: str) -> bool:
    return SANDBOX.exec(text).error is None


def _usable(decorators: list[ast.expr]) -> list[ast.expr]:
    """Leave out what asks the interpreter how it was started."""
    return [node for node in decorators if "sys." not in ast.unparse(node)]


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
    branch = ast.If(ast.Constant(False), [n for n in nodes if not _is_future(n)] or [ast.Pass()], [])
    error = SANDBOX.exec(ast.unparse(ast.fix_missing_locations(ast.Module([branch], [])))).error
    return "" if error is None else str(error).partition("; ")[0]


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


class Native:
    """The program without the sandbox. A statement of the module that fails is dropped, for the guest as well."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__", "__doc__": None}
        self.body: list[ast.stmt] = []
        self._run(PRELUDE, "<prelude>")
        for node in body:
            try:
                self._run(_text(body, node), "<module>")
            except Exception:  # noqa: BLE001 - it needs what the prelude does not give
                continue
            self.body.append(node)

    def _run(self, text: str, name: str) -> None:
        with self._quiet():
            exec(compile(text, name, "exec", dont_inherit=True), self.names)

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

    def __init__(self, body: list[ast.stmt]) -> None:
        self.session: Session = SANDBOX.session()
        prelude = self._run(PRELUDE, "<prelude>")
        if prelude.error is not None:
            raise RuntimeError(f"the prelude does not run in the sandbox\n{prelude.traceback}")
        self.failed: list[str] = []
        for node in body:
            for part in _without_refused(node):
                result = self._run(_text(body, ast.fix_missing_locations(part)), "<module>")
                if result.error is not None:
                    self.failed.append(
                        f"{ast.unparse(node)[:60]!r}: {type(result.error).__name__}: {result.error}"
                    )

    def _run(self, text: str, name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.session.run(text, name)

    def outcome(self, class_: str, method: str) -> str:
        result = self._run(f"outcome_of({class_!r}, {method!r})", "<run>")
        return str(result.value) if result.error is None else f"{type(result.error).__name__}: {result.error}"


def _text(body: list[ast.stmt], node: ast.stmt) -> str:
    """Give the text of one statement of a module, under the module's future imports."""
    return ast.unparse(ast.Module([*(n for n in body if _is_future(n)), node], []))


def version() -> str:
    """Name the running interpreter, as the ledger does."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"
