"""Values that were stored before modules of `agex.values` moved are read today."""

from __future__ import annotations

import base64
import collections
import json
from pathlib import Path
from typing import Any

import pytest

from agex.values import Group, NotKept, decode
from agex.values.base.stream_names import _MOVED
from agex.values.decoder import _CONSTRUCTORS, _METHODS

pytest.importorskip("polars", reason="polars' values are among those stored")
pytest.importorskip("pyarrow", reason="Arrow's tables are among those stored")
pytest.importorskip("plotly", reason="a figure is among those stored")

STORED: dict[str, dict[str, Any]] = {
    each["name"]: each
    for each in json.loads((Path(__file__).parent / "streams_0_1.json").read_text(encoding="utf-8"))
}
"""Streams written by the first layout, with the `repr` that their values had then."""


def read(guest: Any, name: str) -> Any:
    stored = STORED[name]
    group = Group(
        names=(name,),
        stream=base64.b64decode(stored["stream"]),
        buffers=tuple(map(base64.b64decode, stored["buffers"])),
    )
    return decode(group, allow=guest.allow, guest=guest)[name]


@pytest.mark.parametrize("name", sorted(STORED.keys() - {"lost"}))
def test_a_value_of_the_first_layout_is_what_it_was(make_guest, name):
    value = read(make_guest(), name)
    assert type(value) is not NotKept
    if (shown := STORED[name]["shown"]) is not None:
        assert repr(value) == shown


def test_an_ordered_dict_of_the_first_layout_is_what_it_was(make_guest):
    assert read(make_guest(), "od") == collections.OrderedDict(a=1)  # whose repr is another since Python 3.12


def test_a_placeholder_of_the_first_layout_is_one_today(make_guest):
    assert type(read(make_guest(), "lost")) is NotKept


def test_code_of_the_first_layout_runs(make_guest):
    guest = make_guest()
    assert (read(guest, "f")(1), read(guest, "g")(1), read(guest, "part")()) == (2, 4, 4)
    assert (read(guest, "cached")(4), read(guest, "sd")(4), read(guest, "sd")("x")) == (8, "int", "any")


def test_each_module_that_moved_still_has_constructors():
    assert set(_MOVED.values()) == {
        module for module, _ in _CONSTRUCTORS.keys() | _METHODS if module.startswith("agex.")
    }
