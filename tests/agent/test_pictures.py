"""Pictures in and out: what an agent looks at, and what a model is shown."""

from __future__ import annotations

import io
from typing import Any

import pytest

from agex import Agent, OutputEvent
from agex.testing import ScriptedModel

PIL_Image = pytest.importorskip("PIL.Image", reason="Pillow comes with the extra `test`")


def agent_of(*codes: str, images: bool = True) -> Agent:
    return Agent(model=ScriptedModel([f"```python\n{code}\n```" for code in codes], images=images))


def look(agent: Agent, thing: Any) -> Any:
    """Run one turn that looks at *thing*; return the request that shows what was seen."""

    @agent.task
    def inspect(thing: object) -> None: ...

    inspect(thing)
    return agent.resolved_model().requests[1].messages[-1]  # type: ignore[attr-defined]


def opened(image: Any) -> Any:
    return PIL_Image.open(io.BytesIO(image.data))


TWO_TURNS = ("view_image(thing)", "task_success(None)")


def test_a_pil_image_is_shown_to_the_model() -> None:
    message = look(agent_of(*TWO_TURNS), PIL_Image.new("RGB", (3, 2), "red"))
    assert [(i.media_type, opened(i).size, opened(i).getpixel((0, 0))) for i in message.images] == [
        ("image/png", (3, 2), (255, 0, 0))
    ]


@pytest.mark.parametrize("mode", ["CMYK", "L", "RGBA", "F", "P"])
def test_any_mode_of_a_picture_is_shown(mode: str) -> None:
    message = look(agent_of(*TWO_TURNS), PIL_Image.new(mode, (3, 2)))
    assert opened(message.images[0]).size == (3, 2)


def test_a_large_picture_is_scaled_down() -> None:
    message = look(agent_of(*TWO_TURNS), PIL_Image.new("L", (4000, 1000)))
    assert opened(message.images[0]).size == (1568, 392)


def test_encoded_bytes_are_shown_as_they_are() -> None:
    out = io.BytesIO()
    PIL_Image.new("RGB", (3, 2), "red").save(out, "JPEG")
    message = look(agent_of(*TWO_TURNS), out.getvalue())
    assert [(i.media_type, i.data) for i in message.images] == [("image/jpeg", out.getvalue())]


def test_an_array_of_pixels_is_shown() -> None:
    numpy = pytest.importorskip("numpy", reason="numpy comes with the extra `test`")
    message = look(agent_of(*TWO_TURNS), numpy.full((2, 3, 3), 7, dtype="uint8"))
    assert (opened(message.images[0]).size, opened(message.images[0]).getpixel((0, 0))) == ((3, 2), (7, 7, 7))


def test_a_matplotlib_figure_that_the_agent_drew_is_shown() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib comes with the extra `test`")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    agent = agent_of(
        "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot([1, 2])\nview_image(axes)",
        "task_success(None)",
    )
    agent.module(plt, name="matplotlib.pyplot")
    message = look(agent, None)
    plt.close("all")
    assert opened(message.images[0]).size == (640, 480)


def test_a_plotly_figure_is_drawn_or_it_is_said_what_is_missing() -> None:
    graphs = pytest.importorskip("plotly.graph_objects", reason="plotly comes with the extra `test`")
    message = look(agent_of(*TWO_TURNS), graphs.Figure(graphs.Bar(y=[1, 2])))
    assert [opened(i).size for i in message.images] == [(900, 600)] or "kaleido" in message.content


def test_pictures_are_part_of_the_record() -> None:
    agent = agent_of(*TWO_TURNS)

    @agent.task
    def inspect(thing: object) -> None: ...

    run = inspect.run(PIL_Image.new("L", (3, 2)))
    assert [len(event.images) for event in run.events if isinstance(event, OutputEvent)] == [1]


def test_a_model_that_cannot_see_is_told_so() -> None:
    message = look(agent_of(*TWO_TURNS, images=False), PIL_Image.new("L", (3, 2)))
    assert message.images == ()
    assert "cannot look at pictures" in message.content


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (b"BM no such format", "no PNG, JPEG, GIF or WebP"),
        (b"\x89PNG\r\n\x1a\n" + bytes(6_000_000), "Scale it down"),
        ({"a": 1}, "not dict"),
        ("plot.png", "not str"),
    ],
    ids=["bytes", "large", "dict", "text"],
)
def test_what_is_no_picture_is_refused_in_the_agents_code(thing: Any, said: str) -> None:
    message = look(agent_of(*TWO_TURNS), thing)
    assert message.images == ()
    assert said in message.content


def test_an_array_that_is_no_picture_is_refused_in_the_agents_code() -> None:
    numpy = pytest.importorskip("numpy", reason="numpy comes with the extra `test`")
    assert "uint8" in look(agent_of(*TWO_TURNS), numpy.zeros((2, 2))).content


def test_the_number_of_pictures_of_one_action_is_bounded() -> None:
    message = look(
        agent_of("for _ in range(100): view_image(thing)", "task_success(None)"), PIL_Image.new("L", (3, 2))
    )
    assert len(message.images) == 8
    assert "At most 8 pictures" in message.content


def test_pictures_among_the_inputs_are_shown_with_the_task() -> None:
    agent = agent_of("task_success(None)")

    @agent.task
    def compare(left: PIL_Image.Image, factor: int, right: PIL_Image.Image) -> None: ...

    compare(PIL_Image.new("L", (3, 2)), 2, PIL_Image.new("L", (5, 4)))
    message = agent.resolved_model().requests[0].messages[1]  # type: ignore[attr-defined]
    assert [opened(image).size for image in message.images] == [(3, 2), (5, 4)]
    assert "Shown here: left, right, in this order." in message.content


def test_bytes_of_the_agents_own_class_reach_the_record_as_plain_bytes() -> None:
    out = io.BytesIO()
    PIL_Image.new("L", (3, 2)).save(out, "PNG")
    code = "class Mine(bytes):\n    def __bytes__(self):\n        return self\nview_image(Mine(thing))"
    message = look(agent_of(code, "task_success(None)"), out.getvalue())
    assert [type(image.data) for image in message.images] == [bytes]


def test_a_picture_of_the_agents_own_class_runs_as_its_code_under_its_limits() -> None:
    agent = agent_of(
        "from PIL import Image\n"
        "class Mine(Image.Image):\n"
        "    def copy(self):\n"
        "        return open('/etc/passwd')\n"
        "view_image(Mine())",
        "task_success(None)",
    )
    agent.module(PIL_Image, name="PIL.Image")
    message = look(agent, None)
    assert message.images == ()
    assert "Error" in message.content


OF_ITS_OWN = {
    "a class": """
class Mine(Image.Image):
    def copy(self): here()
picture = Mine()
""",
    "a value": """
class Mine:
    def __bool__(self): here()
picture = Image.new("P", (3, 2))
picture.info["icc_profile"] = Mine()
""",
    "a key": """
class Mine(str):
    def __eq__(self, other): here()
    def __hash__(self): return hash("transparency")
picture = Image.new("P", (3, 2))
picture.info[Mine()] = 1
""",
}


@pytest.mark.parametrize("name", OF_ITS_OWN)
def test_a_picture_that_an_agent_gives_to_another_runs_none_of_its_code(name: str) -> None:
    other = agent_of("task_success(None)")

    @other.task
    def look_at(picture: PIL_Image.Image) -> None: ...

    agent = agent_of(f"from PIL import Image\n{OF_ITS_OWN[name]}look_at(picture)", "task_success(None)")
    agent.module(PIL_Image, name="PIL.Image")
    agent.fn(look_at)
    ran: list[None] = []
    agent.fn(lambda: ran.append(None), name="here")

    @agent.task
    def work() -> None: ...

    record = work.run()
    assert ran == []
    assert record.turns == 2
    assert not any(event.error for event in record.events if isinstance(event, OutputEvent))
