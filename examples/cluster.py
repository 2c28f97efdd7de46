"""A task scaled over a Dask cluster, its state in one PostgreSQL database that all workers share.

Run it with ``python examples/cluster.py [--model MODEL] [--dsn DSN] [--scheduler ADDRESS]``. Without a DSN,
the variables PGHOST, PGUSER, ... say where the database is; without a scheduler, two workers are started.
It needs the extra `examples` (``pip install "agex-py[examples]"``); see ``funcy.py`` for the model.
A Dask scheduler runs whatever anybody who reaches it sends: keep it on a network of your own.
"""

import argparse
from typing import Any

import distributed

from agex import Agent, Budget, Task, TaskError, Versioned
from agex.state.postgres import PostgresStore

SALES = {
    "north": [(120.0, "EUR"), (80.0, "USD")],
    "south": [(300.0, "USD")],
    "east": [(10.0, "EUR"), (20.0, "EUR"), (50.0, "GBP")],
}

agent = Agent(
    name="accountant",
    primer="The dict `rates` is there already: what one unit of a currency is in euros.",
    budget=Budget(calls=6),
)


@agent.task
def in_euros(sales: list[tuple[float, str]]) -> float:
    """Add up the sales, pairs of an amount and its currency, in euros."""
    raise NotImplementedError


def work(task: Task[[list[tuple[float, str]]], float], dsn: str, region: str, branch: str) -> float | str:
    """Do one region's work on a worker, on a branch of its own."""
    state = Versioned(PostgresStore(dsn), branch=branch)
    try:
        return task.using(state=state)(SALES[region])
    except TaskError as error:
        return f"no sum: {error}"
    finally:
        state.close()


def connected(scheduler: str | None) -> Any:
    """Return a client of the scheduler, or of two workers that it starts. Dask has few types of its own."""
    dask: Any = distributed
    if scheduler is None:
        return dask.Client(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    return dask.Client(scheduler)


def main(model: object = None, dsn: str = "", scheduler: str | None = None) -> None:
    """Prepare the state, have the regions done at once, and enter the sums where they are asked for."""
    agent.model = model
    agent.resolved_model()  # without a model, say so now and not on every worker
    state = Versioned(PostgresStore(dsn))
    state["rates"] = {"EUR": 1.0, "USD": 0.5, "GBP": 1.5}
    state.commit("the rates of today")
    # A branch for each region, so that no two workers write to one. It begins with the rates.
    regions = list(SALES)
    branches = [state.fork().branch for _ in regions]

    with connected(scheduler) as client:
        # The task goes there by its declaration, and its agent by its settings. What a model answers is no
        # pure function of the arguments: Dask must not take two calls for one.
        futures = client.map(work, [in_euros] * 3, [dsn] * 3, regions, branches, pure=False)
        sums: list[float | str] = client.gather(futures)

    state["sums"] = dict(zip(regions, sums, strict=True))
    state.commit("the sums of today")
    print(state["sums"])
    for region, branch in zip(regions, branches, strict=True):
        task, *_, rates = state.history(state.branches()[branch])
        print(f"{region}: {task.message!r} after {rates.message!r}")
    state.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="'local', 'openai:gpt-5-mini', ...; else what the environment offers")
    parser.add_argument("--dsn", default="", help="e.g. 'host=127.0.0.1 dbname=agex'")
    parser.add_argument("--scheduler", help="the address of a Dask scheduler")
    arguments = parser.parse_args()
    main(arguments.model, arguments.dsn, arguments.scheduler)
