"""An orchestrator and two specialists: a task of one agent is a function of another.

Run it with ``python examples/multi.py [--model MODEL]``; see ``funcy.py`` for the model it needs.
There is no graph and no workflow language: the orchestrator's code calls its specialists.
"""

import argparse

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from agex import ActionEvent, Agent, Budget

analyst = Agent(name="analyst", primer="You make data.")
analyst.module(pd)

plotter = Agent(name="plotter", primer="You plot data with plotly.express.")
plotter.module(px)

# One budget for the whole tree: what the specialists spend is the orchestrator's.
orchestrator = Agent(name="orchestrator", budget=Budget(calls=20))


@orchestrator.fn
@analyst.task
def make_table(description: str) -> pd.DataFrame:
    """Make the table of numbers that the description asks for."""
    raise NotImplementedError


@orchestrator.fn
@plotter.task
def draw(table: pd.DataFrame, wish: str) -> go.Figure:
    """Draw the table as the wish says."""
    raise NotImplementedError


@orchestrator.task
def illustrate(idea: str) -> go.Figure:
    """Make a figure of the idea: have the data made with make_table, then have it drawn with draw."""
    raise NotImplementedError


def main(model: object = None) -> None:
    """Have an idea illustrated, and say who did what."""
    for agent in (analyst, plotter, orchestrator):
        agent.model = model
    run = illustrate.run("the squares of 0 to 5 as a line")
    [line] = run.result().data
    assert isinstance(line, go.Scatter)
    print(line.type, [int(x) for x in line.x], [int(y) for y in line.y])
    # Events of the specialists are in the record of the call that they worked for, in order.
    print([event.agent for event in run.events if isinstance(event, ActionEvent)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    main(parser.parse_args().model)
