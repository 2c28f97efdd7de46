"""Runs the corpus, prints what differs and counts by file; ``--table`` writes the table into docs/libraries.md.

``python tests/sandbox/everyday/measure.py [--table] [--level LEVEL] [beginning of a snippet's name ...]``

With ``--level`` the snippets run as full Python in workers of that level.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from everyday import corpus
from everyday.native import Native, Outcome

from agex.isolation import Level, executor_of
from agex.sandbox import Policy

DOCS = Path(__file__).parents[3] / "docs" / "libraries.md"
BEGIN, END = "<!-- everyday: begin -->\n", "<!-- everyday: end -->"


def write_table() -> None:
    """Write the table into the docs."""
    text = DOCS.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    DOCS.write_text(f"{before}{BEGIN}{corpus.table()}\n{END}{rest.partition(END)[2]}", "utf-8")


def measure(beginnings: list[str], level: Level | None) -> None:
    """Run the snippets whose names begin so, all of them where none is given."""
    total: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    natives: dict[str, Native] = {}
    policies: dict[str, Policy] = {}
    for snippet in corpus.snippets():
        if beginnings and not snippet.id.startswith(tuple(beginnings)):
            continue
        if snippet.library not in natives:
            natives[snippet.library] = Native(corpus.REGISTERED[snippet.library])
            policies[snippet.library] = corpus.policy_of(snippet.library)
        expected = natives[snippet.library].run(snippet.source)
        actual = _run(snippet, level, policies[snippet.library])
        total[snippet.library] += 1
        ran[snippet.library] += actual.seen == expected.seen
        if expected.error:
            print(f"!! {snippet.id}: CPython raises {expected.error}")
        if actual.seen != expected.seen:
            print(f"-- {snippet.id}: {actual.error} {actual.message[:300]}")
            if not actual.error:
                print(f"   expected {expected.stdout[:300]!r}\n   got      {actual.stdout[:300]!r}")
    for library in total:
        print(f"{library:15} {ran[library]:4} of {total[library]}")
    print(f"{'all':15} {sum(ran.values()):4} of {sum(total.values())}")
    for each in natives.values():
        each.close()


def _run(snippet: corpus.Snippet, level: Level | None, policy: Policy) -> Outcome:
    """Run a snippet in this process under its guards, or as full Python in a worker of a level."""
    if level is not None:
        return corpus.run_full(snippet, executor_of(level), policy)
    actual = corpus.run_guest(snippet, corpus.policy_of(snippet.library))
    importlib.import_module("matplotlib.pyplot").close("all")
    return actual


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="write the table into docs/libraries.md")
    parser.add_argument("--level", choices=["process", "kernel", "container"])
    parser.add_argument("names", nargs="*", help="beginnings of the names of snippets")
    options = parser.parse_args()
    if options.table:
        write_table()
    else:
        measure([re.sub(r"\s+", " ", each) for each in options.names], options.level)


if __name__ == "__main__":
    main()
