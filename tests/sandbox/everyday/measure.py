"""Runs the corpus and prints what differs, by library: ``python measure.py [library ...]``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("MPLBACKEND", "Agg")

from everyday import corpus


class Native:
    """The process that runs snippets under plain CPython."""

    def __init__(self, library: str) -> None:
        # polars starts threads that a fork has not
        loads = [each for each in corpus.REGISTERED[library] if each != "polars"]
        self._process = subprocess.Popen(
            [sys.executable, str(corpus.HERE / "native.py"), *loads],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "MPLBACKEND": "Agg"},
        )

    def run(self, snippet: corpus.Snippet) -> corpus.Outcome:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(snippet.source) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        return corpus.Outcome(corpus.plain(said["stdout"]), said["error"])

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


if __name__ == "__main__":
    import matplotlib.pyplot as plt
    args = sys.argv[1:]
    total, ran = Counter(), Counter()
    policies, natives = {}, {}
    for s in corpus.snippets():
        if args and not any(s.id.startswith(a) for a in args):
            continue
        if s.library not in natives:
            natives[s.library] = Native(s.library)
            policies[s.library] = corpus.policy_of(s.library)
        expected = natives[s.library].run(s)
        got = corpus.run_guest(s, policies[s.library])
        plt.close("all")
        total[s.library] += 1
        if got.seen == expected.seen:
            ran[s.library] += 1
            if expected.error: print(f"?? {s.id}: native {expected.error}")
        elif got.error:
            print(f"-- {s.id}: {got.error}: {got.message[:300]}" + (f"  [native {expected.error}]" if expected.error else ""))
        else:
            print(f"!= {s.id}: native {expected.error or ''} {expected.stdout[:300]!r}\n        guest {got.stdout[:300]!r}")
    for lib in total:
        print(f"{lib:15} {ran[lib]:4} of {total[lib]}")
    print(f"{'all':15} {sum(ran.values())} of {sum(total.values())}")
    for n in natives.values():
        n.close()
