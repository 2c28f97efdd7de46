"""Work on a live pandas DataFrame: it is never copied into a prompt, and what comes back is checked.

Run it with ``python examples/data.py [--model MODEL]``; see ``funcy.py`` for the model it needs.

The small local model (0.5B) cleans the frame at once, and does not get the sums right in five minutes.
"""

import argparse

import pandas as pd

from agex import Agent, Budget, TaskError

agent = Agent(name="analyst", budget=Budget(calls=8))
agent.module(pd)


@agent.task
def busiest(sales: pd.DataFrame, count: int) -> dict[str, int]:
    """Give the regions with the most units sold in all, and their units; at most `count` of them."""
    raise NotImplementedError


@agent.task
def cleaned(sales: pd.DataFrame) -> pd.DataFrame:
    """Return the sales without the rows whose `units` is missing, and with `units` as integers.

    Leave the frame that you were given as it is.
    """
    raise NotImplementedError


def main(model: object = None) -> None:
    """Clean a frame, ask about it, and show what that took; or why there is no answer."""
    agent.model = model
    sales = pd.DataFrame(
        {
            "region": ["north", "south", "east", "north", "south", "east", "west"],
            "units": [100, 80, 120, 90, 70, 130, None],
        }
    )
    try:
        clean = cleaned(sales)  # a DataFrame like any other, not a description of one
        run = busiest.run(clean, 2)
    except TaskError as error:
        print(f"no answer: {error}")
    else:
        print(f"{len(sales)} rows, {len(clean)} of them clean")
        print(run.value)
        print(f"{run.turns} turns, {run.usage.tokens} tokens, {run.duration:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    main(parser.parse_args().model)
