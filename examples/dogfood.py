"""An agent that makes agents: its code uses ``Agent``, and what it returns is a task of the new one.

Run it with ``python examples/dogfood.py [--model MODEL]``; see ``funcy.py`` for the model it needs.
"""

import argparse
import math
from collections.abc import Callable

from agex import Agent, Budget

PRIMER = """\
You make specialists. A specialist is an agent with one task, which is a function with types, a docstring and
an empty body:

    specialist = Agent(name="speller", primer="You spell words.")

    @specialist.task
    def spell(word: str) -> str:
        "Spell the word, letter by letter."

    task_success(spell)

You do not do the specialist's work yourself. Give it the modules it needs: specialist.module(math).
"""

architect = Agent(name="architect", primer=PRIMER, budget=Budget(calls=12))
# What the architect has, its agents may have; what it has not, they cannot get. The same goes for turns,
# time, budget and isolation.
architect.cls(Agent)
architect.module(math)


@architect.task
def make_specialist(wanted: str) -> Callable[[str], str]:
    """Make a specialist for what is wanted, and return its task."""
    raise NotImplementedError


def main(model: object = None) -> None:
    """Have a specialist made, then give it work: each call of it is a task with turns of its own."""
    architect.model = model
    solve = make_specialist("solves linear equations in x that are given as a text, and answers 'x = ...'")
    print(repr(solve))
    print(solve("4*x + 5 = 13"))
    print(solve("10 - x = 3"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    main(parser.parse_args().model)
