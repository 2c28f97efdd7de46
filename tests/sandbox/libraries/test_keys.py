"""What libraries remember for the process: the host finds nothing under a key of a guest's that lies.

Stopped by: sandbox.patches.library_caches.
"""

from __future__ import annotations

import datetime as dt
import importlib
import zoneinfo
from collections.abc import Callable
from typing import Any

import pytest

from agex.sandbox import Policy, Sandbox

LYING = """
class S(str):
    def __hash__(self): return hash(other)
    def __eq__(self, x): return x == other or str.__eq__(self, x)
    def split(self, *a): return [self]
    def strip(self, *a): return self
    def __getitem__(self, at): return self
class I(int):
    def __hash__(self): return hash(other)
    def __eq__(self, x): return x == other
"""


def _hours(zone: Any) -> float:
    offset = zone.utcoffset(dt.datetime(2024, 1, 1))  # noqa: DTZ001 - a time there
    return offset.total_seconds() / 3600  # type: ignore[no-any-return]


def _marker() -> int:
    markers: Any = importlib.import_module("matplotlib.markers")
    return len(markers.MarkerStyle("$yyyyy$").get_path().vertices)


def _template(name: str) -> Any:
    return importlib.import_module("plotly.io").templates[name].layout.plot_bgcolor


def _distance() -> Any:
    figure: Any = importlib.import_module("plotly.graph_objects").Figure()
    figure.layout.hoverdistance = 5
    return figure.layout.hoverdistance


POISONED: dict[str, tuple[str, str, object, Callable[[], object]]] = {
    "a time zone of pandas": (
        "pandas",
        "other = 'Europe/London'\nimport pandas as pd\npd.Timestamp('2024-01-01', tz=S('Asia/Tokyo'))",
        0,
        lambda: _hours(zoneinfo.ZoneInfo("Europe/London")),
    ),
    "a time zone of dateutil": (
        "matplotlib",
        "other = 'Europe/Paris'\nimport matplotlib.dates as md\nmd.DateFormatter('%H', tz=S('Asia/Tokyo'))",
        1,
        lambda: _hours(importlib.import_module("dateutil.tz").gettz("Europe/Paris")),
    ),
    "a marker": (
        "matplotlib",
        "other = 9\nimport matplotlib.markers as m\nm.MarkerStyle((I(5), 0, 0))",
        10,
        lambda: len(importlib.import_module("matplotlib.path").Path.unit_regular_polygon(9).vertices),
    ),
    "a marker that is a star": (
        "matplotlib",
        "other = 11\nimport matplotlib.markers as m\nm.MarkerStyle((I(5), 1, 0))",
        23,
        lambda: len(importlib.import_module("matplotlib.path").Path.unit_regular_star(11).vertices),
    ),
    "a marker that is a text": (
        "matplotlib",
        "other = '$yyyyy$'\nimport matplotlib.markers as m\nm.MarkerStyle(S('$x$'))",
        100,
        _marker,
    ),
    "the rules of a property": (
        "plotly.graph_objects",
        "other = 'hoverdistance'\nimport plotly.graph_objects as go\ngo.Figure().layout[S('hovermode')]",
        5,
        _distance,
    ),
    "a template": (
        "plotly.graph_objects",
        "other = 'seaborn'\nimport plotly.graph_objects as go\ngo.Figure().update_layout(template=S('ggplot2'))",
        "rgb(234,234,242)",
        lambda: _template("seaborn"),
    ),
    "the weights of an integral": (
        "scipy",
        "other = 9\nimport scipy.integrate as i\ni.fixed_quad(lambda x: x**12, 0, 1, n=I(2))",
        0.0769,
        lambda: round(float(importlib.import_module("scipy.integrate").fixed_quad(lambda x: x**12, 0, 1, n=9)[0]), 4),
    ),
    "the order of a sum": (
        "numpy",
        "other = 'C'\nimport numpy as np\na = np.ones((3, 3, 3))\nnp.einsum('aij,ajk->aik', a, a, optimize=True, order=S('F'))",
        True,
        lambda: _ordered("C"),
    ),
}  # fmt: skip


def _ordered(order: Any) -> bool:
    np: Any = importlib.import_module("numpy")
    a = np.ones((3, 3, 3))
    return bool(np.einsum("aij,ajk->aik", a, a, optimize=True, order=order).flags.c_contiguous)


@pytest.mark.parametrize("name", POISONED)
def test_the_host_finds_what_it_looks_for_after_a_guest_asked_with_a_key_that_lies(name: str) -> None:
    package, source, expected, look = POISONED[name]
    policy = Policy.default()
    policy.module(pytest.importorskip(package.partition(".")[0]))

    Sandbox(policy).exec(f"{LYING}{source}")

    assert look() == expected


def test_a_member_of_an_enumeration_names_a_zone_a_template_and_a_marker() -> None:
    source = """
import enum
import matplotlib.dates as md, matplotlib.markers as m, plotly.graph_objects as go
class Name(enum.StrEnum):
    ZONE = "Asia/Tokyo"
    TEMPLATE = "ggplot2"
class Sides(enum.IntEnum):
    FIVE = 5
figure = go.Figure()
figure.update_layout(template=Name.TEMPLATE)
shape = m.MarkerStyle((Sides.FIVE, 0, 0)).get_path().vertices.shape
md.DateFormatter("%H", tz=Name.ZONE).tz is not None, figure.layout.template.layout.plot_bgcolor, shape
"""
    policy = Policy.default()
    for package in ("matplotlib", "plotly"):
        policy.module(pytest.importorskip(package))

    assert Sandbox(policy).exec(source).value == (True, "rgb(237,237,237)", (6, 2))


def test_the_name_of_a_time_zone_is_said_by_the_code_itself() -> None:
    pytest.importorskip("pandas")
    policy = Policy.default()
    policy.module(importlib.import_module("pandas"))
    source = "import enum, pandas as pd\nclass Z(enum.StrEnum): T = 'Pacific/Apia'\n"

    refused = Sandbox(policy).exec(f"{source}pd.Timestamp('2024-01-01', tz=Z.T)")
    given = Sandbox(policy).exec(f"{source}str(pd.Timestamp('2024-01-01', tz=Z.T.value).tz)")

    assert isinstance(refused.error, TypeError)
    assert given.value == "Pacific/Apia"
