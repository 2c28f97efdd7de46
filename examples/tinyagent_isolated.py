"""Code in a process of its own, and a tool that it calls in this one.

Run it with ``python examples/tinyagent_isolated.py [--model MODEL]``; see ``funcy.py`` for the
model it needs. Where the level does not hold, it says so and asks no model: there is no step down to a
weaker one.

The small local model (0.5B) manages this one.
"""

import argparse

from agex import IsolationUnavailable
from agex.tinyagent import TinyCodeAgent, TrustLevel, tool


@tool
def calculate(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


def main(model: object = None) -> None:
    """Have two numbers added by the tool."""
    agent = TinyCodeAgent(model=model, tools=[calculate], trust_level=TrustLevel.ISOLATED)
    try:
        print(agent.run_sync("Add 5 and 3 with calculate, and return the result"))
    except IsolationUnavailable as error:
        print(f"not run: {error}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    main(parser.parse_args().model)
