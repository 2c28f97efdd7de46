"""A live SQLite connection in the agent's hands: no wrapper, no copy, the rows end in your database.

Run it with ``python examples/db.py [--model MODEL]``; see ``funcy.py`` for the model it needs.

The small local model (0.5B) does not: it inserts nothing, and answers with words of the question.
"""

import argparse
import sqlite3

from agex import Agent, Budget

SCHEMA = "CREATE TABLE loans (book TEXT NOT NULL, reader TEXT NOT NULL, days INTEGER NOT NULL)"

agent = Agent(
    name="librarian",
    primer=f"`db` is an open sqlite3.Connection with one table:\n{SCHEMA}\nCommit what you change.",
    budget=Budget(calls=16),
)


@agent.task
def enter(note: str) -> int:
    """Insert the loans that the note tells of, one row each, and return how many rows you inserted."""
    raise NotImplementedError


@agent.task
def ask(question: str) -> list[str]:
    """Answer with SQL over the loans: the names that the question asks for, in alphabetical order."""
    raise NotImplementedError


def main(model: object = None) -> None:
    """Let the agent write to the database and read from it, then look at the rows as the host."""
    agent.model = model
    db = sqlite3.connect(":memory:")
    db.execute(SCHEMA)
    # The connection itself, not its class: it cannot be pickled, and it need not be. The policy that comes
    # with agex for sqlite3 holds here too: no ATTACH, no extensions, no files beyond this database.
    agent.module(db, name="db")

    print(enter("Ada took Emma for 14 days and Dracula for 30. Ben has Walden, for a week."))
    print(ask("Who has borrowed a book for more than ten days?"))
    print(db.execute("SELECT book, days FROM loans ORDER BY days").fetchall())
    db.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    main(parser.parse_args().model)
