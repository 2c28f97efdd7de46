"""The command: ``python -m bench.sandbox``, from the root of the repository.

Each entry of the table is measured in a process of its own, plain ``exec`` beside the
side: several peers patch the process they are in, and some programs of theirs never end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.sandbox import fixed, peers, runaway, sides, table
from bench.sandbox.pairs import Cell, measure
from bench.sandbox.workload import WORKLOADS, load

from agex.cli.benchmark import provenance

_ROOT = Path(__file__).parents[2]
_PATIENCE = 150.0  # seconds for one entry; a peer that needs more has no figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; give the exit code: 1 if agex answers wrong or refuses."""
    options = _parser().parse_args(arguments)
    if options.cell:
        print(json.dumps(asdict(_measured(options.cell[0], options.cell[1], options.pairs))))
        return 0
    if options.runaway:
        print(runaway.as_json(runaway.measure_here(options.runaway)))
        return 0
    pairs = 3 if options.quick else options.pairs
    cells = [
        _in_child(side, workload, pairs)
        for workload in options.workloads or WORKLOADS
        for side in options.sides or [*sides.SIDES, *peers.installed()]
    ]
    costs = {} if options.only_ratios else fixed.measure_fixed(pairs)
    endings = [] if options.only_ratios or options.quick else runaway.measure_runaways()
    print("\n".join(table.lines(cells, costs, endings)))
    if options.out:
        report = {
            **provenance(),
            "cells": [asdict(cell) for cell in cells],
            "geometric_means": {
                side: table.geometric_mean([c for c in cells if c.side == side])
                for side in dict.fromkeys(cell.side for cell in cells)
            },
            "fixed": costs,
            "runaways": [asdict(ending) for ending in endings],
        }
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    return int(any(cell.side in sides.SIDES and cell.status != "ok" for cell in cells))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.sandbox", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three pairs, and no run-away programs")
    parser.add_argument("--pairs", type=int, default=9, help="pairs of runs for each entry (default 9)")
    known = [*sides.SIDES, *peers.PEERS]
    parser.add_argument(
        "--sides", type=_some_of(known), help="agex, agex60, strict, full or a peer, with commas between"
    )
    parser.add_argument("--workloads", type=_some_of(WORKLOADS), help="names, with commas between")
    parser.add_argument("--only-ratios", action="store_true", help="no fixed costs, no run-away programs")
    parser.add_argument("--out", type=Path, help="write everything to this file, as JSON")
    parser.add_argument("--cell", nargs=2, metavar=("SIDE", "WORKLOAD"), help=argparse.SUPPRESS)
    parser.add_argument("--runaway", choices=runaway.RUNAWAYS, help=argparse.SUPPRESS)
    return parser


def _some_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        given = text.split(",")
        if odd := [name for name in given if name not in known]:
            raise argparse.ArgumentTypeError(f"no {', '.join(odd)}; there are {', '.join(known)}")
        return given

    return names


def _measured(side: str, workload: str, pairs: int) -> Cell:
    ours = side in sides.SIDES
    make = sides.SIDES[side] if ours else peers.PEERS[side][1]
    return measure(side, make(), load(workload), pairs, full=ours)


def _in_child(side: str, workload: str, pairs: int) -> Cell:
    command = [sys.executable, "-m", "bench.sandbox", "--cell", side, workload, "--pairs", str(pairs)]
    try:
        done = subprocess.run(  # noqa: S603 - this program
            command, cwd=_ROOT, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return Cell(side=side, workload=workload, status="cannot", reason=f"no end within {_PATIENCE:g} s")
    if done.returncode != 0:
        return Cell(side=side, workload=workload, status="cannot", reason=f"died: {done.stderr[-300:]}")
    return Cell(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    sys.exit(main())
