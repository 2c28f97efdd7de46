"""Write docs/design/threat-ledger.md: each attack in the tests, the modules that stop it, and the test.

A test module of `PATTERNS` says in its docstring which modules of agex stop its attacks::

    Stopped by: sandbox.patches.copy, sandbox.classes.hook_guards

The names are below ``agex.``, of modules or rooms. A test that differs from the rest of its module has such a
line in a docstring of its own. A test module without attacks is in `NO_ATTACKS`, with the reason. The
sentences of the page are the names of the tests; the attacks after the colon are the ids of their parameters.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["LedgerError", "page"]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/design/threat-ledger.md"

PATTERNS = (
    "tests/**/test_attacks.py",
    "tests/**/test_escapes.py",
    "tests/**/test_forged_*.py",
    "tests/**/test_holes_*.py",
    "tests/**/test_hostile*.py",
    "tests/**/test_lying_*.py",
    "tests/**/test_page_attacks.py",
    "tests/**/test_tamper.py",
    "tests/**/test_trust.py",
    "tests/**/test_ways_round.py",
    "tests/isolation/**/test_*.py",
    "tests/sandbox/**/test_*.py",
)

NO_ATTACKS = {
    "tests/sandbox/test_everyday.py": "everyday programs do what they do in CPython",
    "tests/sandbox/stdlib/test_everyday_errors.py": "everyday errors are those of CPython",
    "tests/sandbox/policy/test_module_copies.py": "modules are copied whole, and once for all threads",
    "tests/isolation/test_agents.py": "tasks in a worker do what they do in process",
    "tests/isolation/test_module_sources.py": "files that a container is given",
    "tests/isolation/test_conformance.py": "the levels run the same code",
    "tests/isolation/workspace/test_own_modules.py": "modules of the workspace run anew when they change",
    "tests/isolation/test_faults.py": "errors across the border",
    "tests/isolation/test_full_python.py": "what full Python can do, and how it ends",
    "tests/isolation/test_first_start.py": "when a worker is started, and who waits for it",
    "tests/isolation/test_full_python_programs.py": "programs of others run unchanged in full Python",
    "tests/isolation/test_full_python_terminal.py": "the files of a terminal in full Python",
    "tests/isolation/test_files.py": "the workspace of a worker",
    "tests/isolation/workspace/test_libraries.py": "compiled libraries over real files",
    "tests/isolation/test_host_time.py": "whose time a call takes",
    "tests/isolation/test_terminal.py": "the terminal of a worker",
    "tests/sandbox/test_differential.py": "guest code does what CPython does",
    "tests/sandbox/test_generated_programs.py": "generated programs do what they do in CPython",
    "tests/sandbox/test_cpython_suite.py": "CPython's own tests, with a ledger of their own",
    "tests/sandbox/language/test_humaneval_reference.py": "the reference solutions of HumanEval",
    "tests/sandbox/language/test_language.py": "guest code does what CPython does",
}
"""Test modules of `PATTERNS` without attacks, and what they are about."""

EVERYDAY = frozenset({"AS_IN_PYTHON", "EQUAL", "EVERYDAY"})
"""Names of tables with programs that work: tests of these are no attacks."""

_LINE = re.compile(r"^Stopped by: *(?P<names>[\w.]+(?:,\s*[\w.]+)*)", re.MULTILINE)


class LedgerError(Exception):
    """A test module says nothing, or names a module that does not exist."""


class Attack(NamedTuple):
    """One test: the sentence, its parameters, and the modules that stop it."""

    name: str
    ids: tuple[str, ...]
    modules: tuple[str, ...]


def page(root: Path = ROOT, no_attacks: Mapping[str, str] = NO_ATTACKS) -> str:
    """Return the text of the page for the project in *root*.

    Raises:
        LedgerError: a test module says nothing, or names a module that does not exist.
    """
    found = {path: list(_attacks(root, path)) for path in _files(root, no_attacks)}
    unknown = {
        f"{path} names agex.{module}, which is no module"
        for path, attacks in found.items()
        for attack in attacks
        for module in attack.modules
        if not _is_module(root, module)
    }
    if unknown:
        raise LedgerError("\n".join(sorted(unknown)))
    return "\n".join([*_head(found), *_index(found), *_sections(root, found), ""])


def _files(root: Path, no_attacks: Mapping[str, str]) -> list[str]:
    paths = {str(path.relative_to(root)) for pattern in PATTERNS for path in root.glob(pattern)}
    unknown = no_attacks.keys() - paths
    if unknown:
        raise LedgerError(f"NO_ATTACKS names {sorted(unknown)}, which are no test modules")
    return sorted(paths - no_attacks.keys())


def _attacks(root: Path, path: str) -> Iterator[Attack]:
    tree = ast.parse((root / path).read_text(encoding="utf-8"))
    modules = _stopped_by(tree)
    if not modules:
        raise LedgerError(
            f"{path} says in its docstring no 'Stopped by: sandbox.guards, ...'; "
            "write which modules stop its attacks, or add it to NO_ATTACKS of tools/threat_ledger.py"
        )
    tables = _tables(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            if not names & EVERYDAY:
                yield Attack(
                    name=node.name.removeprefix("test_").replace("_", " "),
                    ids=tuple(_ids(node, tables)),
                    modules=_stopped_by(node) or modules,
                )


def _stopped_by(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    said = _LINE.search(ast.get_docstring(node) or "")
    return tuple(said["names"].rstrip(".").replace(",", " ").split()) if said is not None else ()


def _is_module(root: Path, name: str) -> bool:
    home = root / "src/agex" / name.replace(".", "/")
    return home.with_suffix(".py").exists() or (home / "__init__.py").exists()


# -- parameters


def _tables(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values of the module's variables."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found


def _ids(node: ast.FunctionDef | ast.AsyncFunctionDef, tables: dict[str, ast.expr]) -> Iterator[str]:
    """Yield the ids of a test's parameters, where the source of the test module says them."""
    for decorator in node.decorator_list:
        if not (isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("mark.parametrize")):
            continue
        named = next((each.value for each in decorator.keywords if each.arg == "ids"), None)
        for source in (named, *decorator.args[1:2]):
            keys = [] if source is None else list(_keys(source, tables))
            if keys:
                yield from keys
                break


def _keys(node: ast.expr, tables: dict[str, ast.expr]) -> Iterator[str]:
    """Yield the texts by which a table, a list or a call over one names its items."""
    match node:
        case ast.Name(id=name) if name in tables:
            yield from _keys(tables[name], {each: tables[each] for each in tables if each != name})
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if key is None:  # **another
                    yield from _keys(value, tables)
                elif isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            for item in items:
                yield from _item(item)
        case ast.BinOp(left=left, right=right):
            yield from _keys(left, tables)
            yield from _keys(right, tables)
        case ast.Call(func=ast.Attribute(value=value)):  # TABLE.values()
            yield from _keys(value, tables)
        case ast.Call(args=[first, *_]):  # sorted(TABLE), cases(TABLE)
            yield from _keys(first, tables)
        case _:  # read from elsewhere: it has no names here
            return


def _item(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.Tuple(elts=[ast.Constant(value=str(text)), *_]):
            yield text
        case ast.Call(keywords=keywords):
            for each in keywords:
                if each.arg == "id" and isinstance(each.value, ast.Constant):
                    yield str(each.value.value)
        case _:  # an item without a name
            return


# -- the page


def _head(found: dict[str, list[Attack]]) -> list[str]:
    tests = sum(map(len, found.values()))
    ids = sum(len(attack.ids) for attacks in found.values() for attack in attacks)
    return [
        "# Threat ledger",
        "",
        "Attacks on agex that its tests repeat, the modules that stop them, and the tests. Search this page",
        "for a name of Python or of a library to find the small defences against its misuse. `make ledger`",
        "writes it from the tests (`tools/threat_ledger.py`), and a test compares it with them.",
        "",
        f"{tests} tests in {len(found)} files, with {ids} attacks that bear a name.",
        "",
    ]


def _index(found: dict[str, list[Attack]]) -> Iterator[str]:
    tests: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for path, attacks in found.items():
        for attack in attacks:
            for module in attack.modules:
                tests[module][path] += 1
    yield from ("## Modules", "", "| module of agex | tests |", "| --- | --- |")
    for module, paths in sorted(tests.items()):
        said = ", ".join(f"{_short(path)} {count}" for path, count in sorted(paths.items()))
        yield f"| `{module}` | {said} |"
    yield ""


def _sections(root: Path, found: dict[str, list[Attack]]) -> Iterator[str]:
    yield from ("## Attacks", "")
    for path, attacks in found.items():
        tree = ast.parse((root / path).read_text(encoding="utf-8"))
        shared = _stopped_by(tree)
        summary = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
        yield from (f"### {_short(path)}", "", summary, "", f"Stopped by {_listed(shared)}.", "")
        for attack in attacks:
            own = f" Stopped by {_listed(attack.modules)}." if attack.modules != shared else ""
            ids = f": {'; '.join(map(_quoted, attack.ids))}." if attack.ids else "."
            yield f"- {attack.name}{ids}{own}"
        yield ""


def _short(path: str) -> str:
    return path.removeprefix("tests/").removesuffix(".py")


def _listed(modules: tuple[str, ...]) -> str:
    return ", ".join(f"`{module}`" for module in modules)


def _quoted(text: str) -> str:
    shown = (each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    one = "".join(shown)
    short = one if len(one) <= _LONGEST else f"{one[: _LONGEST - 1]}…"
    return f"`{short.replace('`', chr(39)).replace('](', '] (')}`"  # not to be taken for a link


_LONGEST = 80
"""Characters of an attack on the page: programs without an id of their own are cut."""


def main() -> None:
    """Write the page."""
    try:
        text = page()
    except LedgerError as error:
        sys.exit(str(error))
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(text.splitlines())} lines")


if __name__ == "__main__":
    main()
