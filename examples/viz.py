"""A plot over pandas data: a plotly figure comes back as the object, ready to be changed and written.

Run it with ``python examples/viz.py [--model MODEL] [--out FILE]``; see ``funcy.py`` for the model it needs.

The small local model (0.5B) manages this one.
"""

import argparse
from pathlib import Path

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from agex import Agent, Budget

agent = Agent(name="illustrator", budget=Budget(calls=8))
agent.module(pd)
agent.module(px)


def has_something_to_show(figure: go.Figure, inputs: object) -> str | None:
    """Refuse an empty figure while the agent can still do something about it."""
    return None if len(figure.data) else "the figure has no traces; plot the data"


@agent.task(checks=[has_something_to_show])
def plot(data: pd.DataFrame, wish: str) -> go.Figure:
    """Plot the data as the wish says, with plotly.express. Return the figure."""
    raise NotImplementedError


def main(model: object = None, out: Path | None = None) -> None:
    """Have a figure made, change it here, and write it where the agent could not."""
    agent.model = model
    rain = pd.DataFrame({"month": ["Jan", "Feb", "Mar", "Apr"], "mm": [190, 152, 170, 114]})
    figure = plot(rain, "bars of the rain by month")
    figure.update_layout(title="Rain in Bergen")  # the same Figure that the agent's code made
    for trace in figure.data:
        assert isinstance(trace, go.Bar)
        print(trace.type, [int(height) for height in trace.y])
    print(figure.layout.title.text)
    if out is not None:
        figure.write_html(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    parser.add_argument("--out", type=Path, help="write the figure to this HTML file")
    arguments = parser.parse_args()
    main(arguments.model, arguments.out)
