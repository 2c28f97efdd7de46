"""Write what the running interpreter adds to ``cpython_ledger.toml``: ``python tests/sandbox/differential/write_ledger.py``.

Entries of other versions are kept; those of this version are made anew, or of the modules named only. Read the difference before committing it:
an entry that begins with ``differs`` is a bug until somebody says otherwise.
"""

from __future__ import annotations

import gc
import json
import re
import sys
import tomllib
import warnings
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import cpython

LEDGER = Path(__file__).with_name("cpython_ledger.toml")
HEAD = """\
# Test methods of CPython's own test package that pass without the sandbox and not inside it, with the reason.
# Written by write_ledger.py. `refused` and `not granted` are the sandbox's purpose; `follows` needs something of
# those two; `text` differs in the words of a message or a repr only; `differs` is a bug.
"""
TEXTS = {
    "test_deepcopy_dont_memo_immutable": "refused: the memo of a copy is not shown",
    "test_deepcopy_keepalive": "refused: the memo of a copy is not shown",
    "test_dataclasses_qualnames": "text: a guarded `__setattr__` has the qualified name of its guard",
    "test_bug_40736": "text: the stand-in of type is named in a message",
    "test___class___mro": "refused: a class looked at from its metaclass's mro() is not yet the guest's",
    "TestRecursiveRepr.test_assigned_attributes": "refused: annotations of a library's function come as a copy",
    "FractionTest.testMixed": "follows: numbers.Rational.register(Rat), of a class of the library, is refused",
    "test_3:24": "refused: dir() leaves out the names that may not be read",
    "email_tests:84": "refused: dir() leaves out the names that may not be read",
    "doctests:237": "refused: dir() leaves out the names that may not be read",
    **{  # by version
        f"coroutine_tests:{line}": "follows: gc_collect was not made"
        for line in (192, 204, 214, 225, 237, 240, 247, 252, 262)
    },
    "test_isinstance_abstract": "refused: a class that lies about its __bases__",
    "test_isinstance_normal": "refused: a class that lies about its __bases__",
    "test_subclass_abstract": "refused: a class that lies about its __bases__",
    "test_subclass_normal": "refused: a class that lies about its __bases__",
    "test_raise_handle_all_raise_two_unnamed": "not granted: sys.exception",
    "test_raise_unnamed": "not granted: sys.exception",
    "test_multiple_matches_unnamed": "not granted: sys.exception",
    "BuiltinTest.test_hasattr": "not granted: sys.stdout",
    "BuiltinTest.test_vars": "not granted: sys.stdout",
    "BuiltinTest.test_exec_globals": "refused: the builtins of exec() are those of the sandbox",
    "LockContextTestCase": "refused: private members of the stand-ins of threading",
    "test_frame_resurrect": "not granted: sys._getframe",
    "test_filter_dealloc": "refused: iterators nested more than 1000 deep",
    "test_lru_cache_weakrefable": "follows: gc.collect() changes nothing",
    "test_container_iterator": "follows: gc.collect() changes nothing",
    "test_gc_collection": "follows: gc.collect() changes nothing",
    "test_exec_builtins_mapping_import": "refused: imports are judged by the grants alone",
    "test_eval_kwargs": "refused: eval() takes globals and locals by place",
    "test_exec_kwargs": "refused: exec() takes globals and locals by place",
    "test_cmp_to_signature": "not granted: inspect.Signature.from_callable",
    "test_common_signatures": "not granted: inspect.Signature.from_callable",
    "test_copy_replace_with_invisible_fields": "text: a refused attribute is told by the sandbox's own words",
    "TypeAliasConstructorTest.test_generic": "follows: the module of this test has the class of the interpreter, type() gives that of the sandbox",
    "test_varargs": "text: a guarded builtin words a call error differently",
}


def reason(method: str, outcome: str) -> str:
    """Say in one line why a method does not pass in the sandbox."""
    kind, _, text = outcome.partition(": ")
    for name, why in TEXTS.items():
        if name in method:
            return why
    left_out = re.search(r"'([\w.]+)' exists, but is not available here", text)
    if left_out:
        return f"not granted: {left_out[1]}"
    if kind == "refused" or kind.startswith("Sandbox") or "Sandbox" in text or " is not available; " in text:
        where = text.removeprefix(kind).partition("; ")[0].partition(" (line")[0]
        return "refused: " + re.sub(r" at 0x[0-9a-f]+", "", where)[:110]
    if "agex.sandbox" in outcome or "Guards." in outcome:
        return "text: a guarded builtin words a call error differently"
    missing = re.search(r"module '([\w.]+)' has no attribute '(\w+)'", text)
    if missing:
        return f"not granted: {missing[1]}.{missing[2]}"
    if kind == "NameError" and "KeyboardInterrupt" in text:
        return "not granted: KeyboardInterrupt belongs to whoever sits at the keyboard"
    if kind in {"NameError", "KeyError"}:
        return f"follows: {text.strip()} was not made"
    if kind == "skipped":
        return f"follows: skipped, {text}"[:110]
    return f"differs: {outcome}"[:140].replace("\n", " ")


def entries(wanted: set[str]) -> dict[str, dict[str, list[str]]]:
    """Run modules; give, by module and reason, the methods that do not pass in the sandbox."""
    found: dict[str, dict[str, list[str]]] = {}
    for module in cpython.MODULES:
        source = cpython.source_of(module)
        if source is None or module not in wanted:
            continue
        run = cpython.compare(source)
        by_reason: dict[str, list[str]] = defaultdict(list)
        for method, outcome in run.differing.items():
            by_reason[reason(method, outcome)].append(method)
        found[module] = dict(by_reason)
        _report(module, run)
    for module in cpython.DOCTESTS:
        source = cpython.source_of(module)
        if source is None or f"{module}_examples" not in wanted:
            continue
        run = cpython.compare_examples(source)
        by_reason = defaultdict(list)
        for method, outcome in run.differing.items():
            by_reason[reason(method, outcome)].append(method)
        found[f"{module}_examples"] = dict(by_reason)
        _report(f"{module}_examples", run)
    return found


def _report(module: str, run: cpython.Comparison) -> None:
    print(
        f"{module}: {len(run.equal)} equal, {len(run.differing)} differ, {len(run.inapplicable)} not applicable"
    )
    gc.collect()


def main() -> None:
    """Merge this version's entries into the ledger."""
    merged: dict[str, dict[tuple[str, str], set[str]]] = defaultdict(lambda: defaultdict(set))
    here = cpython.version()
    known = {*cpython.MODULES, *(f"{module}_examples" for module in cpython.DOCTESTS)}
    wanted = set(sys.argv[1:]) or known
    if LEDGER.exists():
        for module, rows in tomllib.loads(LEDGER.read_text("utf-8")).items():
            for row in rows:
                for method in row["methods"]:
                    merged[module][row["why"], method] |= set(row["on"]) - (
                        {here} if module in wanted else set()
                    )
    for module, by_reason in entries(wanted).items():
        for why, methods in by_reason.items():
            for method in methods:
                merged[module][why, method].add(here)
    lines = [HEAD]
    for module in sorted(known & merged.keys()):
        rows: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
        for (why, method), versions in merged[module].items():
            if versions:
                rows[why, tuple(sorted(versions))].append(method)
        for (why, versions), methods in sorted(rows.items()):
            listed = "".join(f"  {json.dumps(method)},\n" for method in sorted(methods))
            lines.append(
                f"[[{module}]]\nwhy = {json.dumps(why)}\non = {json.dumps(versions)}\nmethods = [\n{listed}]\n"
            )
    LEDGER.write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
