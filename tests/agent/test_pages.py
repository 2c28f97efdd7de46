"""What runs, events, agents, tasks and states show of themselves, whatever a guest put into them."""

from __future__ import annotations

import base64
import gc
import io
import threading
from typing import Any

import pytest
from markup import Markup, read
from rich.console import Console

from agex import (
    Agent,
    Budget,
    Live,
    OutputEvent,
    SuccessEvent,
    TaskClarify,
    TaskFail,
    TaskStartEvent,
    Versioned,
)
from agex.models.base import Image
from agex.testing import ScriptedModel, python_action

WHERE = {"agent": "a", "task": "t", "run_id": "r", "turn": 1}

SLY = """
seen = []

class Sly:
    def _hook(self, *args, **kwargs):
        host.append("hook")
        return "<script>alert(1)</script>"
    __repr__ = __str__ = __format__ = __len__ = __bool__ = __eq__ = _hook
    def __hash__(self):
        host.append("hash")
        return 1
    def __iter__(self):
        host.append("iter")
        return iter(())
    def __getattr__(self, name):
        host.append(name)
        return self._hook
    def _repr_html_(self):
        return self._hook()
    def _repr_mimebundle_(self, **kwargs):
        return {"text/html": self._hook()}
    def _ipython_display_(self):
        self._hook()
    def __rich__(self):
        return self._hook()
    def to_plotly_json(self):
        return self._hook()
    def __deepcopy__(self, memo):
        return self._hook()
"""


def agent_of(*codes: str, **settings: Any) -> Agent:
    return Agent(model=ScriptedModel([f"```python\n{code}\n```" for code in codes]), **settings)


def made_by_guest(expression: str) -> tuple[Any, list[str]]:
    """Return what a guest made, and where it notes each of its methods that runs."""
    host: list[str] = []
    agent = agent_of(f"{SLY}\nhost.clear()\ntask_success({expression})")

    @agent.task
    def make(host: list[str]) -> object: ...

    run = make.run(host)
    host.clear()
    return run, host


def shown(thing: Any) -> Markup:
    """Show a thing in every way there is."""
    text = str(thing) + repr(thing)
    Console(file=io.StringIO()).print(thing, [thing])
    assert "\x1b" not in text
    return read(thing._repr_html_())


@pytest.mark.parametrize(
    "expression",
    ["Sly()", "Sly", "[Sly()]", "{'a': Sly()}", "{Sly(): 1}", "(Sly(), {1: [Sly()]})", "lambda: Sly()"],
)
def test_no_method_of_a_guests_class_runs_when_its_object_is_shown(expression: str) -> None:
    run, host = made_by_guest(expression)
    found = shown(run)
    for event in run.events:
        shown(event)
    live = Live({"it": run.value})
    shown(live)
    assert host == []
    assert "script" not in found.tags


DERIVED = {
    "an enum": """
import enum
class E(enum.Enum):
    A = 1
    def __getattribute__(self, name):
        host.append(name)
        return object.__getattribute__(self, name)
    __repr__ = __str__ = lambda self: host.append("text")
made = [E.A]
""",
    "a frame": """
class Frame(pd.DataFrame):
    __module__ = "pandas"
    shape = dtypes = iloc = columns = property(lambda self: host.append("property"))
    __len__ = lambda self: host.append("len") or 0
made = [Frame({"a": [1]}), {"it": Frame({"a": [1]})}]
""",
    "a series": """
class Series(pd.Series):
    shape = dtype = iloc = array = property(lambda self: host.append("property"))
made = [Series([1])]
""",
    "a number": """
class Number(np.float64):
    __module__ = "numpy"
    __float__ = __repr__ = __str__ = __format__ = item = lambda self, *a: host.append("number") or 1.0
class Whole(int):
    __int__ = __index__ = __repr__ = __str__ = bit_length = lambda self: host.append("whole") or 1
made = [Number(1.0), Whole(2), pd.DataFrame({"a": [Number(1.0), Whole(2)]}, dtype=object)]
""",
    "a text": """
class Text(str):
    __repr__ = __str__ = __len__ = __getitem__ = __iter__ = lambda self, *a: host.append("text") or ""
made = [Text("x" * 9_000), {Text("key"): Text("value")}, pd.Series([Text("x")], dtype=object)]
""",
    "a record": """
import dataclasses, typing
@dataclasses.dataclass
class Data:
    a: int
    def __getattribute__(self, name):
        host.append(name)
        return object.__getattribute__(self, name)
    __repr__ = lambda self: host.append("repr") or ""
class Named(typing.NamedTuple):
    a: int
    __repr__ = __iter__ = __len__ = lambda self: host.append("named") or 0
made = [Data(1), Named(1)]
""",
    "an exception": """
class Bad(Exception):
    __repr__ = __str__ = lambda self: host.append("text") or ""
made = [Bad()]
""",
}


@pytest.mark.parametrize("code", DERIVED.values(), ids=list(DERIVED))
def test_no_method_runs_of_a_class_that_a_guest_derived_from_a_known_one(code: str) -> None:
    numpy = pytest.importorskip("numpy", reason="numpy comes with the extra `test`")
    pandas = pytest.importorskip("pandas", reason="pandas comes with the extra `test`")
    host: list[str] = []
    agent = agent_of(f"import numpy as np\nimport pandas as pd\n{code}\ntask_success(made)")
    agent.module(numpy)
    agent.module(pandas)

    @agent.task
    def make(host: list[str]) -> object: ...

    run = make.run(host)
    host.clear()
    shown(run)
    for value in run.value:  # type: ignore[attr-defined]
        event = SuccessEvent(**WHERE, result=value)
        shown(event)
        event.model_dump_json()
    shown(Live({"it": run.value}))
    assert host == []


def test_no_method_runs_when_guests_objects_stand_in_a_frame_or_a_series() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas comes with the extra `test`")
    run, host = made_by_guest("[Sly(), Sly]")
    one, kind = run.value
    frame = pandas.DataFrame({"a": [one, 2]}, index=pandas.Index(["x", kind], dtype=object))
    series = pandas.Series([one, kind], dtype=object)
    host.clear()
    for value in (frame, series, frame.set_index(series)):
        event = SuccessEvent(**WHERE, result=value)
        host.clear()
        assert "table" in shown(event).tags
        assert host == []


def test_a_method_that_a_guest_hid_in_a_frame_is_not_called() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas comes with the extra `test`")
    frame = pandas.DataFrame({"a": [1, 2]})
    called: list[str] = []
    for name in ("_repr_html_", "to_html", "map", "items", "head", "__len__"):
        frame.__dict__[name] = lambda *_: called.append("called")
    assert "2 rows x 1 columns" in shown(SuccessEvent(**WHERE, result=frame)).text
    assert called == []


def test_a_class_made_from_a_librarys_own_is_not_asked_for_its_markup() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas comes with the extra `test`")
    called: list[str] = []

    class Frame(pandas.DataFrame):  # type: ignore[misc]
        def _repr_html_(self) -> str:
            called.append("html")
            return "<script>"

        def to_html(self, *_: Any, **__: Any) -> str:  # type: ignore[override]
            return self._repr_html_()

    assert "script" not in shown(SuccessEvent(**WHERE, result=Frame({"a": [1]}))).tags
    assert called == []


def test_ten_thousand_rows_are_shown_by_their_ends() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas comes with the extra `test`")
    frame = pandas.DataFrame({f"c{n}": range(10_000) for n in range(100)})
    found = shown(SuccessEvent(**WHERE, result=frame))
    assert "10,000 rows x 100 columns; 12 columns shown" in found.text
    assert found.tags.count("tr") == 22
    assert "9999" in found.text


def test_a_plotly_figure_is_drawn_in_a_frame_that_reaches_nothing() -> None:
    graphs = pytest.importorskip("plotly.graph_objects", reason="plotly comes with the extra `test`")
    figure = graphs.Figure(graphs.Bar(y=[1, 2], name="</script><script>alert(1)</script><!--"))
    (frame,) = shown(SuccessEvent(**WHERE, result=figure)).frames
    assert "default-src 'none'" in frame
    assert "</script><script>alert(1)" not in frame
    assert "\\u003c/script>\\u003cscript>alert(1)\\u003c/script>\\u003c!--" in frame


@pytest.mark.parametrize(
    "name", ["to_dict", "to_json", "to_html", "_repr_html_", "to_plotly_json", "_repr_mimebundle_"]
)
def test_a_method_that_a_guest_hid_in_a_figure_is_not_called(name: str) -> None:
    graphs = pytest.importorskip("plotly.graph_objects", reason="plotly comes with the extra `test`")
    figure = graphs.Figure(graphs.Bar(y=[1, 2]))
    called: list[str] = []
    setattr(figure, name, lambda *_, **__: called.append(name))
    assert len(shown(SuccessEvent(**WHERE, result=figure)).frames) == 1
    assert called == []


@pytest.mark.parametrize("where", ["customdata", "meta", "x"])
def test_a_figure_that_holds_a_guests_object_is_not_drawn_and_runs_none_of_its_methods(where: str) -> None:
    graphs = pytest.importorskip("plotly.graph_objects", reason="plotly comes with the extra `test`")
    run, host = made_by_guest("Sly()")
    figure = graphs.Figure(graphs.Scatter(y=[1]))
    figure._data[0][where] = [run.value]
    found = shown(SuccessEvent(**WHERE, result=figure))
    assert host == []
    assert (found.frames, "is no plain data" in found.text) == ([], True)


def test_a_figure_that_contains_itself_is_not_drawn() -> None:
    graphs = pytest.importorskip("plotly.graph_objects", reason="plotly comes with the extra `test`")
    figure = graphs.Figure(graphs.Scatter(y=[1]))
    figure._data[0]["meta"] = figure._data
    assert "is not shown" in shown(SuccessEvent(**WHERE, result=figure)).text


def test_a_large_figure_is_not_drawn() -> None:
    graphs = pytest.importorskip("plotly.graph_objects", reason="plotly comes with the extra `test`")
    numpy = pytest.importorskip("numpy", reason="numpy comes with the extra `test`")
    figure = graphs.Figure(graphs.Scatter(y=numpy.zeros(10**6)))
    assert "more than 200,000 values" in shown(SuccessEvent(**WHERE, result=figure)).text


def test_a_matplotlib_figure_is_shown_as_a_picture() -> None:
    figures = pytest.importorskip("matplotlib.figure", reason="matplotlib comes with the extra `test`")
    figure = figures.Figure()
    figure.subplots().plot([1, 2])
    assert "img" in shown(SuccessEvent(**WHERE, result=figure)).tags


def test_a_matplotlib_figure_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = pytest.importorskip("matplotlib.figure", reason="matplotlib comes with the extra `test`")
    monkeypatch.setattr("agex.agent.rendering.figure_view.SECONDS", 0.5)
    agent = agent_of("def label(*_):\n    while True:\n        pass\ntask_success(label)")

    @agent.task
    def make() -> object: ...

    figure = figures.Figure()
    figure.subplots().xaxis.set_major_formatter(make())
    found = shown(SuccessEvent(**WHERE, result=figure))
    assert "could not be drawn" in found.text


def test_a_matplotlib_figure_cannot_open_files_of_the_host(tmp_path: Any) -> None:
    figures = pytest.importorskip("matplotlib.figure", reason="matplotlib comes with the extra `test`")

    def label(*_: Any) -> str:
        (tmp_path / "made").write_text("x")
        return ""

    figure = figures.Figure()
    figure.subplots().xaxis.set_major_formatter(label)
    assert "could not be drawn" in shown(SuccessEvent(**WHERE, result=figure)).text
    assert list(tmp_path.iterdir()) == []


def test_a_picture_is_shown_and_one_made_from_it_is_not_trusted() -> None:
    pil = pytest.importorskip("PIL.Image", reason="Pillow comes with the extra `test`")
    assert "img" in shown(SuccessEvent(**WHERE, result=pil.new("L", (3, 2)))).tags

    class Sly(pil.Image):  # type: ignore[misc, name-defined]
        def _repr_png_(self, *_: Any) -> bytes:
            raise AssertionError("called")

    assert "img" not in shown(SuccessEvent(**WHERE, result=Sly())).tags


def test_what_an_agent_looked_at_is_shown() -> None:
    event = OutputEvent(**WHERE, text="looked", images=(Image(data=b"\x89PNG"),))
    assert base64.b64encode(b"\x89PNG").decode() in event._repr_html_()
    assert "a picture, image/png, 4 bytes" in str(event)
    assert len(repr(OutputEvent(**WHERE, images=(Image(data=bytes(10**6)),)))) < 1_000


# -- runs ----------------------------------------------------------------------------------------


def total_of(*codes: str, **settings: Any) -> Any:
    agent = agent_of(*codes, **settings)

    @agent.task
    def total(prices: list[float]) -> float:
        """Add the prices up."""

    return total


def test_a_run_shows_its_value_and_its_turns() -> None:
    run = total_of("1 / 0", "task_success(sum(prices))").run([1.5, 2.0])
    lines = str(run).splitlines()
    assert lines[0].startswith("✓ agent.total · done · 2 turns · ")
    assert lines[1:3] == ["  value", "  3.5"]
    assert any("ZeroDivisionError" in line for line in lines)
    found = shown(run)
    assert found.tags.count("details") == 4  # the start, two actions, what the first one did
    assert "3.5" in found.text
    assert repr(run).startswith("<agex run agent.total: done, 2 turns, ")


@pytest.mark.parametrize(
    ("code", "error", "sign"),
    [("task_fail('no <b>way</b>')", TaskFail, "✗"), ("task_clarify('no <b>way</b>')", TaskClarify, "?")],
)
def test_a_run_without_a_value_says_why(code: str, error: type[TaskFail], sign: str) -> None:
    with pytest.raises(error) as caught:
        total_of(code)([1.0])
    run = caught.value.run
    assert str(run).startswith(f"{sign} agent.total · {error.__name__} · 1 turn")
    found = shown(run)
    assert "no <b>way</b>" in found.text


def test_a_run_that_goes_on_shows_what_it_has() -> None:
    seen = threading.Event()

    def reply(_messages: object) -> str:
        seen.wait(20)
        return "```python\ntask_success(sum(prices))\n```"

    task = total_of()
    task.agent.model = reply
    run = task.start([1.0])
    assert "running" in repr(run)
    shown(run)
    seen.set()
    run.result()
    assert "done" in repr(run)
    shown(run)


def test_a_run_of_thousands_of_events_is_shown_by_its_ends() -> None:
    run = total_of("task_success(sum(prices))").run([1.0])
    run._record = type(run._record)(value=1.0, events=run.events[:-1] * 2_000)
    found = shown(run)
    assert "more are not shown here" in found.text
    assert len(str(run)) < 60_000


def test_a_long_value_is_cut() -> None:
    assert len(SuccessEvent(**WHERE, result="<" * 10**7)._repr_html_()) < 50_000
    assert len(TaskStartEvent(**WHERE, inputs={"x": "<" * 10**7})._repr_html_()) < 50_000


# -- agents and tasks ----------------------------------------------------------------------------


def test_an_agent_shows_its_settings_and_what_its_code_may_use_but_no_key() -> None:
    class Asked:
        name = "gpt"
        api_key = "secret"

        def __repr__(self) -> str:
            return "Asked(secret)"

    agent = Agent(name="<i>ann</i>", model=Asked(), primer="Be brief.", budget=Budget(tokens=1000, usd=0.5))

    @agent.fn
    def look_up(name: str) -> int:
        """Find a <b>number</b>."""
        return 1

    found = shown(agent)
    for part in (
        "<i>ann</i>",
        "Asked gpt",
        "10 turns",
        "1,000 tokens, $0.5",
        "Be brief.",
        "look_up",
        "<b>number</b>",
    ):
        assert part in found.text
    assert "secret" not in found.text + str(agent) + repr(agent)


def test_a_task_shows_its_signature_and_what_it_is_told() -> None:
    agent = agent_of()

    @agent.task(primer="Be exact.", checks=[lambda value, inputs: True], reuse=True)
    def double(n: int) -> int:
        """Double it.

        >>> double(2)
        4
        """

    found = shown(double)
    for part in ("def double(n: int) -> int", "Double it.", "Be exact.", "1 check of the value, 1 example"):
        assert part in found.text


# -- states --------------------------------------------------------------------------------------


def test_a_state_shows_its_variables_cache_and_files() -> None:
    state = Live({"rows": [1, 2]})
    state.cache["<i>key</i>"] = 3
    state.files["notes/<b>.txt"] = b"x"
    found = shown(state)
    for part in ("Live · 1 variable", "rows", "[1, 2]", "<i>key</i>", "notes/<b>.txt"):
        assert part in found.text


def test_a_versioned_state_its_history_snapshots_commits_and_diffs_show_themselves() -> None:
    state = Versioned()
    state["n"] = "<script>"
    first = state.commit("<b>first</b>")
    state["n"] = "two"
    state["text"] = "a\nb\n"
    state.commit("second")
    state["text"] = "a\nc\n"
    state.commit("third")
    state.tag("good", first)
    history = state.history()
    assert history[0].message == "third"
    diff = state.diff(first)
    for thing in (state, history, state.checkout(first), state.history()[0]):
        assert "script" not in shown(thing).tags
    assert "tag good" in shown(history).text
    assert shown(history).text.index("third") < shown(history).text.index("<b>first</b>")
    assert "'<script>'" in shown(state.checkout(first)).text
    found = read(diff._repr_html_())
    assert "'<script>' -> 'two'" in found.text
    assert str(diff) == "~ n: '<script>' -> 'two'\n+ text: 'a\\nc\\n'"
    assert "-b" in read(state.diff("main", first)._repr_html_()).text or "text" in found.text
    assert str(state.history()[0]) == state.head
    assert len(list(history)) == len(history) == 3


def test_an_empty_state_shows_that_it_is_empty() -> None:
    state = Versioned()
    assert str(state) == "Versioned · main · no commits · 0 variables"
    assert str(state.history()) == "history · no commits"
    assert "no difference" in read(state.diff(None)._repr_html_()).text


def test_thousands_of_commits_and_variables_give_a_page_of_bounded_size() -> None:
    state = Versioned()
    for n in range(1_000):
        state["n"] = n
        state.commit(f"<{n}>")
    state.update({f"v{n}": n for n in range(4_999)})
    state.commit("many")
    for thing in (state, state.history(), state.checkout("main"), state.diff(None)):
        found = shown(thing)
        assert len(found.text) < 20_000
        assert len(thing._repr_html_()) < 100_000
    assert "and 4,950 more" in shown(state).text


def test_a_variable_that_could_not_be_kept_is_named() -> None:
    state = Versioned()
    agent = agent_of("lines = (n for n in [1])\ntask_success(None)", state=state)

    @agent.task
    def keep() -> None: ...

    keep()
    assert "not kept" in shown(state).text


def test_showing_leaves_nothing_behind() -> None:
    run = total_of("task_success(sum(prices))").run([1.0])
    before = run._repr_html_()
    gc.collect()
    assert run._repr_html_() == before


@pytest.mark.parametrize("table", ["pd.DataFrame({'a': [1]})", "pd.Series([1])"])
def test_what_an_agent_put_beside_a_table_is_not_copied_for_the_page(table):
    pandas = pytest.importorskip("pandas")
    code = (
        "import pandas as pd\nclass Unit:\n    def __deepcopy__(self, memo): raise ValueError\n"
        f"table = {table}\ntable.attrs['unit'] = Unit()\ntask_success(table)"
    )
    agent = Agent(model=ScriptedModel([[python_action(code)]]))
    agent.module(pandas)

    @agent.task
    def work() -> object: ...

    assert "1" in str(work.run().page())
