"""Work on a live pandas DataFrame: it is never copied into a prompt, and what comes back is checked.

Run it with ``python examples/frames.py``; see ``funcy.py`` for the model it needs.
"""

import pandas as pd

from agex import Agent, Budget, TaskError

agent = Agent(name="analyst", budget=Budget(calls=8))


@agent.task
def busiest(sales: pd.DataFrame, count: int) -> dict[str, int]:  # type: ignore[empty-body]
    """Give the regions with the most units sold in all, and their units; at most `count` of them."""


def main() -> None:
    """Ask, and show what it took; or why there is no answer."""
    sales = pd.DataFrame(
        {
            "region": ["north", "south", "east", "north", "south", "east"],
            "units": [100, 80, 120, 90, 70, 130],
        }
    )
    try:
        run = busiest.run(sales, 2)
    except TaskError as error:
        print(f"no answer: {error}")
    else:
        print(run.value)
        print(f"{run.turns} turns, {run.usage.tokens} tokens, {run.duration:.1f} s")


if __name__ == "__main__":
    main()
