"""A long memory: it outlives the process, can be looked at as it was, and can be forked.

Run it with ``python examples/memory.py [--model MODEL] [--state DIRECTORY]``; see ``funcy.py`` for the model
it needs. With a directory of your own it remembers from run to run; ``agex log DIRECTORY`` tells the story.

The small local model (0.5B) does not: it is asked for a function only, and a function leaves no variables.
"""

import argparse
import tempfile
from pathlib import Path

from agex import ActionEvent, Agent, Budget, Disk, Versioned, events

agent = Agent(
    name="secretary",
    primer="Keep the dict `people`, name to a list of facts, from task to task; begin it if there is none.",
    budget=Budget(calls=8),
)


@agent.task
def remember(fact: str) -> None:
    """Add the fact, as it is said, to the list of the person that it is about. The name is its first word."""


@agent.task
def recall(name: str) -> list[str]:
    """Return all that is known about the person."""
    raise NotImplementedError


def main(model: object = None, directory: Path | None = None) -> None:
    """Remember, forget the process, go back in time, and try something out on a fork."""
    agent.model = model
    with tempfile.TemporaryDirectory() as temporary:
        where = directory or Path(temporary)

        state = Versioned(Disk(where))
        agent.state = state
        remember("Ada lives in London")
        remember("Ada plays chess")
        state.close()  # as if the process had ended here

        state = Versioned(Disk(where))
        agent.state = state
        print("now:", recall("Ada"))

        # Each action that was executed is a commit. The first one, pulled up as it was:
        first = next(event for event in events(state) if isinstance(event, ActionEvent))
        assert first.commit_hash is not None  # only without a versioned state
        print("then:", state.checkout(first.commit_hash).get("people"))

        # A fork is a branch that costs nothing: what happens on it stays there until it is merged.
        rumour = state.fork("rumour")
        remember.using(state=rumour)("Ada has a parrot")
        print("on the fork:", recall.using(state=rumour)("Ada"))
        print("on main:", recall("Ada"))
        print(state.diff(state.head, rumour.head))

        state.merge(rumour)  # it was true
        print("merged:", recall("Ada"))
        state.close()  # and with it all its branches
        agent.state = None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    parser.add_argument("--state", type=Path, help="keep the memory in this directory")
    arguments = parser.parse_args()
    main(arguments.model, arguments.state)
