"""Code in a container, for a task whose text comes from somebody you do not know.

Run it with ``python examples/tinyagent_sandboxed.py [--model MODEL]``; see ``funcy.py`` for the
model it needs. Where the level does not hold, it says so and asks no model: there is no step down to a
weaker one.
"""

import argparse

from agex import IsolationUnavailable
from agex.tinyagent import ExecutionLimits, TinyCodeAgent, TrustLevel

FROM_A_STRANGER = "How many of the numbers from 1 to 1000 are prime? Return the count."


def main(model: object = None) -> None:
    """Answer a stranger's question, without any file of this machine."""
    agent = TinyCodeAgent(
        model=model,
        trust_level=TrustLevel.SANDBOXED,
        limits=ExecutionLimits(timeout_seconds=10.0),
        working_directory=None,
    )
    try:
        print(agent.run_sync(FROM_A_STRANGER))
    except IsolationUnavailable as error:
        print(f"not run: {error}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    main(parser.parse_args().model)
