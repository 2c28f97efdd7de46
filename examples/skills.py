"""A skill: documentation that the agent reads when it needs it, instead of a longer prompt for every task.

Run it with ``python examples/skills.py [--model MODEL]``; see ``funcy.py`` for the model it needs.

The small local model (0.5B) does not: it makes a number up without opening the skill.
"""

import argparse

from agex import Agent, Budget

# In a project this is a folder with a SKILL.md: agent.skill("skills/invoice-numbers").
SKILL = """\
---
name: invoice-numbers
description: How our invoice numbers are built and checked. Read it before you make one.
---
An invoice number is `YEAR-NNNN-C`: the year, the running number with four digits, and a check digit.
The check digit is the sum of all digits before it, modulo 7.
"""

agent = Agent(name="accountant", budget=Budget(calls=8))
agent.skill(SKILL.encode())


@agent.task
def invoice_number(year: int, running: int) -> str:
    """Make the number of an invoice, as our skill about invoice numbers says."""
    raise NotImplementedError


def main(model: object = None) -> None:
    """Have a number made by rules that are only in the skill."""
    agent.model = model
    run = invoice_number.run(2031, 42)
    print(run.value)
    print(f"{run.turns} turns")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    main(parser.parse_args().model)
