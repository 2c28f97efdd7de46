"""The command: ``python -m bench.state``, from the root of the repository.

Every figure stands beside a floor that was timed in the same run: disks and machines differ
too much for times alone to say anything.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench.state.changes import measure_changes, measure_frame
from bench.state.decoding import measure_decoding
from bench.state.floor import SIZES, measure_commits, measure_open
from bench.state.history import measure_history
from bench.state.turns import measure_turns

from agex.cli.benchmark import provenance


def main() -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer pairs and a shorter history")
    parser.add_argument("--only", choices=["decoding"], help="one table")
    parser.add_argument("--out", type=Path, help="write everything to this file, as JSON")
    options = parser.parse_args()
    found = {} if options.only else measure(quick=options.quick)
    found["decoding"] = decoded()
    if options.out is not None:
        document = {**provenance(), "figures": found}
        options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def measure(*, quick: bool) -> dict[str, Any]:
    """Measure everything, printing as it goes."""
    found: dict[str, Any] = {"commits": [], "turns": measure_turns(5 if quick else 15)}
    print(f"{'a turn':<28}{'ms':>10}{'floor, ms':>12}{'ratio':>8}{'bytes':>14}")
    for turn, row in found["turns"].items():
        figures = f"{row['ms']:>10.2f}{row['floor, ms']:>12.2f}{row['ratio']:>8.2f}"
        print(f"{turn:<28}{figures}{row['bytes stored']:>14,.0f}")
    found["changes"], found["frame"] = measure_changes(9 if quick else 25), measure_frame(5 if quick else 15)
    for label, row in found["changes"].items():
        print(f"one changed of {label:<20}", *(f"{name}: {value:.2f}  " for name, value in row.items()))
    for label, value in found["frame"].items():
        print(f"{label:<48}{value:>12.2f}")
    print(f"\n{'one of N keys changed':<28}{'N':>9}{'ms':>9}{'floor, ms':>12}{'ratio':>8}")
    for store, durable in (("disk", True), ("disk", False), ("memory", False)):
        for keys in SIZES:
            each = measure_commits(store, durable=durable, keys=keys, pairs=30 if quick else 200)
            found["commits"].append(vars(each))
            level = f", synchronous={'FULL' if durable else 'NORMAL'}" if store == "disk" else ""
            label = f"{store}{level}"
            print(f"{label:<28}{keys:>9,}{each.milliseconds:>9.3f}{each.floor:>12.3f}{each.ratio:>8.2f}")
    found["history"] = measure_history(1_000 if quick else 10_000)
    found["open"] = measure_open(100_000, 9)
    print()
    for label, value in {**found["history"], **found["open"]}.items():
        print(f"{label:<48}{value:>12.2f}")
    return found


def decoded() -> dict[str, dict[str, float]]:
    """Measure decoding, and print its table."""
    found = measure_decoding()
    print(f"\n{'a value decoded':<28}{'ms':>10}{'pickle, ms':>12}{'ratio':>8}")
    for name, row in found.items():
        print(f"{name:<28}{row['ms']:>10.2f}{row['floor, ms']:>12.2f}{row['ratio']:>8.2f}")
    return found


if __name__ == "__main__":
    main()
