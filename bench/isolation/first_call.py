"""The command: ``python -m bench.isolation.first_call``: the first call of a task with pandas.

Each is made in a fresh process, at a level, with a model that answers after a while. What a worker needs is
loaded meanwhile; the figure is what the caller waits beyond the answers.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

_PROGRAM = """
import sys, time
import pandas
from agex import Agent
from agex.testing import ScriptedModel, python_action

LEVEL, PAUSE = sys.argv[1], float(sys.argv[2])

class Slow(ScriptedModel):
    def ask(self, request, on_text=None):
        time.sleep(PAUSE)
        return super().ask(request, on_text)

CODE = "import pandas as pd\\ntask_success(int(pd.DataFrame({'a': rows}).a.sum()))"
model = Slow([[python_action(CODE)]] * 2)
agent = Agent(model=model, isolation=LEVEL)
agent.module(pandas)

@agent.task
def total(rows: list[int]) -> int:
    '''Add up.'''

for _ in range(2):
    begun = time.perf_counter()
    assert total([1, 2]) == 3
    print(time.perf_counter() - begun - PAUSE)
"""


def _waits(command: list[str]) -> list[float]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own text
    return [float(line) for line in done.stdout.split()]


def main() -> None:
    """Run the processes, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", default="kernel")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    for pause in ("0", "1", "3"):
        command = [sys.executable, "-c", _PROGRAM, options.level, pause]
        waits = [_waits(command) for _ in range(options.runs)]
        first, later = (statistics.median(each) for each in zip(*waits, strict=True))
        print(
            f"a model that answers after {pause} s: first call {first:.2f} s beyond it, later {later:.2f} s"
        )


if __name__ == "__main__":
    main()
