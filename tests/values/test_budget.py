"""What decoding costs is paid for by the bytes of what is decoded."""

from __future__ import annotations

import contextvars
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hostile_streams
import numpy as np
import pandas as pd
import pytest
from hostile_streams import call, long_integer, op, stream

from agex.errors import StateCorrupt
from agex.values import Allow, Group, decode, encode
from agex.values.adapters import numpy_arrays as arrays
from agex.values.adapters import pandas_frames as frames
from agex.values.adapters import pandas_scalars as scalars
from agex.values.adapters import stdlib as plain
from agex.values.base import decode_budget
from agex.values.checks import hash_cost as weight
from agex.values.checks import opcode_audit as audit
from agex.values.checks import opcode_grammar as grammar

PROGRAM = Path(hostile_streams.__file__)
SEEDS, COUNT = range(10), 50
WORK_SECONDS = 0.0235
"""What `work` takes of the processor's time on the machine that a second was set on."""


def work() -> float:
    begun = time.thread_time()
    sum(each * each for each in range(500_000))
    return time.thread_time() - begun


SECONDS = max(1.0, min(work() for _ in range(3)) / WORK_SECONDS)
"""Of the processor's time, for others use the machine as well; more on a slower one."""
TIMES, FLOOR = 50, 16 << 20
"""Bytes allocated at most, at any moment, for each of the stream; and what any stream may take."""


@pytest.fixture(scope="module", params=SEEDS)
def measured(request: pytest.FixtureRequest) -> list[tuple[str, int, float, int, str]]:
    """Decode hostile streams in a process of their own, and measure each."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM), str(request.param), str(COUNT)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def test_no_hostile_stream_takes_more_than_a_second_or_fifty_times_its_bytes(
    measured: list[tuple[str, int, float, int, str]],
) -> None:
    slow = [(kind, size, seconds) for kind, size, seconds, _, _ in measured if seconds > SECONDS]
    large = [(kind, size, peak) for kind, size, _, peak, _ in measured if peak > TIMES * size + FLOOR]
    assert (len(measured), slow, large) == (COUNT, [], [])


def shared(width: int, depth: int) -> bytes:
    """Write a tuple of references to one of references, and so on."""
    done = b"(" + b"N" * width + b"t\x94"
    for number in range(depth):
        done += b"0(" + (b"h" + bytes((number,))) * width + b"t\x94"
    return done


def in_batches(keys: int, batch: int) -> bytes:
    """Write integers of one hash, a few at a time."""
    alike = [long_integer(n * sys.hash_info.modulus) + b"N" for n in range(1, keys)]
    batches = [alike[n : n + batch] for n in range(0, keys, batch)]
    return b"}" + b"".join(b"(" + b"".join(each) + b"u" for each in batches)


SEVEN = call(frames.make_range, 0, 700_000_000, 1, None)
PYTHON_TEXT = call(scalars.make_dtype, "StringDtype", ("python", float("nan")))
PRIME = sys.hash_info.modulus
REFUSED: dict[str, bytes] = {
    "a tuple of 100 references ten deep": stream(op(b"}" + shared(100, 10) + b"Ns")),
    "the same, in a set": stream(op(b"\x8f(" + shared(100, 10) + b"\x90")),
    "the same, as no key": stream(op(shared(100, 10))),
    "the same behind a mark that was taken": stream(op(b"(0" + shared(100, 10))),
    "two references fifty deep": stream(op(b"}" + shared(2, 50) + b"Ns")),
    **{
        f"100,000 tuples, each in the next, by {deepens!r}": stream(op(b"}N\x85" + deepens * 100_000 + b"Ns"))
        for deepens in hostile_streams.DEEPENS
    },
    **{
        f"two references forty deep, noted after {between!r}": stream(
            op(b"}" + hostile_streams.noted_later(40, between) + b"Ns")
        )
        for between in hostile_streams.BETWEEN
    },
    "keys that are light, and many": stream(
        op(shared(500, 2) + b"0\x8f" + (b"(" + b"h\x02" * 900 + b"\x90") * 9)
    ),
    "100,000 integers of one hash": stream(
        op(b"}" + b"".join(long_integer(n * PRIME) + b"Ns" for n in range(1, 100_000)))
    ),
    "the same in batches": stream(
        op(
            b"}"
            + b"".join(
                b"(" + b"".join(long_integer((n + m) * PRIME) + b"N" for m in range(1, 1_001)) + b"u"
                for n in range(0, 100_000, 1_000)
            )
        )
    ),
    "the same, given as a list": stream(
        call(plain.make_frozenset, [op(long_integer(n * PRIME)) for n in range(1, 30_000)])
    ),
    "the same in small batches": stream(op(in_batches(30_000, 100))),
    "the same in one batch": stream(
        op(b"\x8f(" + b"".join(long_integer(n * PRIME) for n in range(1, 100_000)) + b"\x90")
    ),
    "the same in a frozenset": stream(
        op(b"(" + b"".join(long_integer(n * PRIME) for n in range(1, 100_000)) + b"\x91")
    ),
    "a series of 700 million numbers": stream(call(frames.make_series, SEVEN, SEVEN, None)),
    "intervals of as many": stream(call(frames.make_intervals, SEVEN, SEVEN, "left", None)),
    "a level of as many": stream(
        call(
            frames.make_levels, [SEVEN], [call(arrays.make_array, bytes(8), "<i8", (1,), False, True)], ["a"]
        )
    ),
    "texts of as many": stream(call(frames.make_strings, PYTHON_TEXT, SEVEN)),
    "categories of as many": stream(call(scalars.make_category_dtype, SEVEN, True)),
    "masked numbers of as many": stream(call(frames.make_masked, "IntegerArray", SEVEN, SEVEN)),
    "records of as many": stream(call(arrays.make_records, SEVEN)),
    "a column of one byte shown again and again": stream(
        call(frames.make_wrapped, hostile_streams.a_view("|i1", 1 << 40))
    ),
    "a dtype of parts that share": stream(
        call(arrays.make_dtype, hostile_streams.get(9)),
        hostile_streams.noted("<i8")
        + b"".join(
            hostile_streams.noted(
                ("fields", [(f"f{m}", hostile_streams.get(n), 0) for m in range(100)], 8, False)
            )
            for n in range(9)
        ),
    ),
    "a pattern of ranges that are gone through": stream(
        call(plain.make_pattern, f"(?i)[{chr(1)}-{chr(0x10FFFF)}]" * 50, 0)
    ),
}


@pytest.mark.parametrize("origin", ["", "kernel"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_takes_more_than_its_bytes_is_refused(name: str, origin: str) -> None:
    begun = time.thread_time()
    with pytest.raises(StateCorrupt):
        decode(Group(names=("x",), stream=REFUSED[name], origin=origin), allow=Allow())
    assert time.thread_time() - begun < SECONDS


@pytest.mark.parametrize(
    "value",
    [
        [{1, 2}, frozenset({3}), (4, (5, 6))] * 50,
        [{"a": n, "b": (n, "text", n * 1.5), ("c", n): [n, {"d": str(n)}]} for n in range(400)],
        {(n, n * 0.5): frozenset({n, n + 1}) for n in range(3_000)},
        frozenset((n, str(n)) for n in range(3_000)),
        [(n,) * 3 for n in range(9_000)],
        {n: f"value {n}" * (n % 9) for n in range(5_000)},
        [2**70 + n for n in range(3_000)],
        {2**70 + n for n in range(3_000)},
        [bytes(300) + b"%d" % n for n in range(300)],
        [set[int]() for _ in range(100_000)],
        [dict[int, int]() for _ in range(100_000)],
        pd.DataFrame({"a": [f"text {n % 50}" for n in range(9_000)], "b": [(n, n) for n in range(9_000)]}),
        pd.Series(pd.Categorical([f"{n % 500}" for n in range(2_000)])),
        [pd.Timestamp("2020") + pd.Timedelta(days=n) for n in range(3_000)],
        [np.float64(n) for n in range(9_000)],
        [pd.Series([n]) for n in range(900)],
        pd.date_range("2020", periods=3_000, freq="B"),
        re.compile("(?i)[\\u4e00-\\u9fff]+|[à-ÿ]"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_honest_values_pay_for_themselves(value: Any) -> None:
    (group,) = encode({"x": value}, allow=Allow())
    copied = tuple(memoryview(bytearray(part)) for part in group.buffers)
    got = decode(Group(names=("x",), stream=group.stream, buffers=copied), allow=Allow())["x"]
    assert type(got) is type(value)
    assert encode({"x": got}, allow=Allow())[0].size == group.size


def test_many_empty_sets_are_paid_for_with_bytes_of_their_own() -> None:
    (group,) = encode({"x": [set[int]() for _ in range(100_000)]}, allow=Allow())
    assert b"".join(group.buffers).strip(b"\0") == b""
    assert group.size < 20 * 100_000


def test_weights_of_what_is_passed_are_those_found_step_by_step() -> None:
    """A run that is passed by a regular expression notes as much as its opcodes do."""
    value = [[(1, "a"), (2, "b")], {"k": (3, (4, 5))}, "text" * 9, ("text", 1.5), {(1, 2)}]
    (group,) = encode({"x": [value, value[0], [value[0][0]] * 3]}, allow=Allow())
    stream = weight.audit.unframed(group.stream)
    passed, stepped = weight._Walk(stream), weight._Walk(stream, memo=[])
    passed._count_gaps()
    assert passed._memo == stepped._memo
    assert passed._stack == stepped._stack


@pytest.mark.parametrize(
    ("opcodes", "passed"),
    [
        (b"(" + b"N" * 20 + b"t", 22),
        (b"N\x85K\x01\x8c\x01a\x94\x86NNN\x87)", 14),
        (b"NNNNN\x87", 6),
        (b"](\x8c\x01aK\x01\x86\x94\x8c\x01bK\x02\x86\x94e", 17),
        (b"\x8c\x01f\x8c\x01g\x93N\x85\x94R\x94", 12),
        (b"N\x85\x85", 2),
        (b"(N\x85t", 3),
        (b"N\x85\x94K\x01\x86", 5),
        (b"h\x00\x85", 2),
        (b"j\x00\x00\x00\x00\x85", 5),
        (b"(" + b"N" * 21 + b"t", 22),
        (b"](N\x91", 3),
        (b"N\x85RR", 3),
    ],
)
def test_flat_tuples_and_calls_of_them_nest_nothing_and_all_others_are_counted(
    opcodes: bytes, passed: int
) -> None:
    found = grammar.shallow_runs().match(opcodes)
    assert found is not None
    assert found.end() == passed


def test_many_flat_tuples_are_not_followed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[bytes] = []
    monkeypatch.setattr(audit, "_depth", steps.append)
    (group,) = encode({"x": [(n, f"text {n}") for n in range(60_000)]}, allow=Allow())
    audit.audit(audit.unframed(group.stream))
    assert steps == []


def test_what_is_passed_at_once_is_passed_step_by_step_too() -> None:
    """A stream of few tuples is looked at once; what that says of it is what the other way says."""
    passed = 0
    for kind, data in hostile_streams.streams(7, 100):
        try:
            bare = audit.unframed(data)
            seen = audit._plainly(bare)
        except (StateCorrupt, IndexError):
            continue
        if seen is None or not bare.endswith(b"."):
            continue
        passed += 1
        shorter = audit._without_long(bare)
        assert seen.shorter == shorter, kind
        assert grammar.safe_runs().fullmatch(shorter), kind
        assert audit._depth(bare) <= 1_000, kind
        assert seen.first_noted is not None
        assert seen.first_noted >= weight._passed(shorter, weight._unnoted(), 0), kind
    assert passed > 20


def test_what_runs_in_a_context_of_its_own_pays_from_the_same_account() -> None:
    with decode_budget.enough_for(1):
        contextvars.Context().run(decode_budget.spend, 5 << 20)
        with pytest.raises(StateCorrupt):
            contextvars.Context().run(decode_budget.spend, 5 << 20)
