"""The same search as test_fuzz.py, led by coverage: ``make fuzz``, or ``python atheris_target.py [seconds]``.

Bytes become choices of the same strategies (``fuzz_one_input``), so what is found is a readable program.
Only agex.sandbox is instrumented: new paths through the guards are what makes an input worth keeping.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

with atheris.instrument_imports(include=["agex.sandbox"]):
    from fuzz import attack, programs

    attack.Attack("import math, random, typing", prelude=programs.SETUP)  # loads what is loaded at first use


def main(seconds: int) -> None:
    """Search for so many seconds; a finding ends the search with its program."""
    from hypothesis import HealthCheck, given, settings

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(programs.programs())
    def search(program: str) -> None:
        found = attack.Attack(program, prelude=programs.SETUP).findings
        if found:
            sys.stderr.write(f"{programs.SETUP}{program}\n{found}\n")
            raise AssertionError(found)

    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={seconds}",
            "-max_len=2048",
            "-len_control=0",
            "-rss_limit_mb=0",
            "-timeout=30",
            f"-artifact_prefix={tempfile.gettempdir()}/",
        ],
        search.hypothesis.fuzz_one_input,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 600)
