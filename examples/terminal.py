"""A terminal over the agent's files, with a command of yours beside ``grep``, ``sort`` and the others.

Run it with ``python examples/terminal.py [--model MODEL]``; see ``funcy.py`` for the model it needs.
No process of the machine is ever started: the shell is Python, and its files are the agent's workspace.

The small local model (0.5B) is not offered a terminal: it formats the files with `json`, and misnames what
it could not.
"""

import argparse
import json

from termish import CommandContext

from agex import Agent, Budget, Live

agent = Agent(
    name="operator",
    primer="Prefer the terminal for looking at files and for changing them.",
    state=Live(),
    budget=Budget(calls=12),
)


@agent.terminal
def prettyjson(context: CommandContext) -> int:
    """Format JSON files in place: prettyjson FILE..."""
    # A command is code of yours with your rights: it reads the workspace, not the disk, because it says so.
    refused = 0
    for path in context.args:
        try:
            value = json.loads(context.fs.read(path))
        except json.JSONDecodeError as error:
            context.stdout.write(f"{path}: {error}\n")
            refused += 1
        else:
            context.fs.write(path, json.dumps(value, indent=2, sort_keys=True).encode())
    return int(refused > 0)  # the exit code


@agent.task
def tidy() -> list[str]:
    """Format all JSON files of the workspace with prettyjson; return the names of those it refused."""
    raise NotImplementedError


def main(model: object = None) -> None:
    """Give the agent some files, and look at them afterwards."""
    agent.model = model
    files = agent.fs()
    files.write("settings.json", b'{"b": 1, "a": [2, 3]}')
    files.write("broken.json", b'{"a": ')
    files.write("notes.txt", b"not JSON\n")
    print(tidy())
    print(files.read("settings.json").decode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    main(parser.parse_args().model)
