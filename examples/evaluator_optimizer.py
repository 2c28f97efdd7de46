"""One agent writes, another judges, and an ordinary ``while`` loop holds them together.

Run it with ``python examples/evaluator_optimizer.py [--model MODEL]``; see ``funcy.py`` for the model it
needs.

The small local model (0.5B) had no answer after five minutes, on two cores busy with other things.
"""

import argparse
from dataclasses import dataclass

from agex import Agent, Budget

ROUNDS = 4  # a loop that a model decides about needs an end of its own

writer = Agent(name="writer", primer="You write short product texts.", budget=Budget(calls=8))
critic = Agent(name="critic", primer="You are strict, and you say what to change.", budget=Budget(calls=8))


@dataclass
class Review:
    """What the critic thinks of a text."""

    approved: bool
    feedback: str


@writer.task
def draft(product: str) -> str:
    """Write one sentence that advertises the product."""
    raise NotImplementedError


@writer.task
def revise(text: str, feedback: str) -> str:
    """Rewrite the text so that the feedback is met. One sentence."""
    raise NotImplementedError


@critic.task
def review(text: str) -> Review:
    """Review the text: approve it if it is at most 12 words long and names a price in euros."""
    raise NotImplementedError


def main(model: object = None) -> None:
    """Write, judge and rewrite until it is good, or the rounds are used up."""
    writer.model = critic.model = model
    text = draft("a folding bicycle for 490 euros")
    rounds = 1
    while not (verdict := review(text)).approved and rounds < ROUNDS:
        print(f"{rounds}. {text}\n   {verdict.feedback}")
        text = revise(text, verdict.feedback)
        rounds += 1
    print(f"{rounds}. {text}\n   {'approved' if verdict.approved else 'not approved: ' + verdict.feedback}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    main(parser.parse_args().model)
