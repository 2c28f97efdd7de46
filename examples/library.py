"""A library that an agent writes for itself in one process, and imports in the next.

Run it with ``python examples/library.py [--model MODEL] [--state DIRECTORY]``; see ``funcy.py`` for the model
it needs. Each day below is a process of its own: all they share is the directory of the state.

The small local model (0.5B) had no answer after five minutes, on two cores busy with other things.
"""

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from agex import Agent, Budget, Disk, Versioned

PRIMER = """\
You keep a library of your own in the workspace, in helpers/. Before you write a function, look whether you
have it already: your modules are listed with their signatures. Write what may be needed again as a module,
with types and a docstring, then import it.
"""

DAYS = [
    "Parse '7h 45m' into minutes",
    "Parse '1h 05m' into minutes, and add the 465 of yesterday",
]


def work(directory: Path, model: object, order: str) -> tuple[int, list[str]]:
    """Do one day's work: the answer, and the modules that the agent has by then."""
    state = Versioned(Disk(directory))
    agent = Agent(name="clerk", model=model, primer=PRIMER, state=state, budget=Budget(calls=8))

    @agent.task
    def minutes(order: str) -> int:
        """Do what the order says, and return the number of minutes."""
        raise NotImplementedError

    try:
        return minutes(order), sorted(path for path in state.files if path.endswith(".py"))
    finally:
        state.close()


def main(model: object = None, directory: Path | None = None) -> None:
    """Work two days, in two processes, over one workspace; then read what the agent wrote."""
    with tempfile.TemporaryDirectory() as temporary:
        where = directory or Path(temporary)
        # One task a process: when the next order comes, the interpreter that wrote the library is gone.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
            modules: list[str] = []
            for order in DAYS:
                answer, modules = processes.submit(work, where, model, order).result()
                print(f"{order}: {answer} {modules}")
        state = Versioned(Disk(where))
        for path in modules:
            print(state.files[path].decode())
        state.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    parser.add_argument("--state", type=Path, help="keep the library in this directory")
    arguments = parser.parse_args()
    main(arguments.model, arguments.state)
