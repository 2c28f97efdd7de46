"""Runs the corpus, prints what differs and counts by file; ``--table`` writes the table into docs/libraries.md.

``python tests/sandbox/everyday/measure.py [--table | beginning of a snippet's name ...]``
"""

from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from everyday import corpus
from everyday.native import Native

DOCS = Path(__file__).parents[3] / "docs" / "libraries.md"
BEGIN, END = "<!-- everyday: begin -->\n", "<!-- everyday: end -->"


def write_table() -> None:
    """Write the table into the docs."""
    text = DOCS.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    DOCS.write_text(f"{before}{BEGIN}{corpus.table()}\n{END}{rest.partition(END)[2]}", "utf-8")


def measure(beginnings: list[str]) -> None:
    """Run the snippets whose names begin so, all of them where none is given."""
    total: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    natives: dict[str, Native] = {}
    for snippet in corpus.snippets():
        if beginnings and not snippet.id.startswith(tuple(beginnings)):
            continue
        if snippet.library not in natives:
            natives[snippet.library] = Native(corpus.REGISTERED[snippet.library])
        expected = natives[snippet.library].run(snippet.source)
        actual = corpus.run_guest(snippet, corpus.policy_of(snippet.library))
        importlib.import_module("matplotlib.pyplot").close("all")
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


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        write_table()
    else:
        measure([re.sub(r"\s+", " ", each) for each in sys.argv[1:]])
