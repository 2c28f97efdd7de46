"""The commands and their options."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer
from rich.console import Console

from agex.display import plain
from agex.errors import AgexError, ModelNotConfigured, TaskError, TaskSuspended

__all__ = ["main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
bench = typer.Typer(help="Measure the product against the bare model.", no_args_is_help=True)
app.add_typer(bench, name="bench")

Model = Annotated[str | None, typer.Option(help="A model string such as 'openai:gpt-5-mini' or 'local'.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def main() -> None:
    """Run the command line."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        from agex import __version__

        typer.echo(f"agex {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """agex: a language model writes the body of a typed function, next to your own objects."""


@app.command()
def demo(model: Model = None, as_json: Json = False) -> None:
    """Solve three typed tasks over real objects with a real model, and show each turn."""
    from agex.cli.demo import run_demo

    with _Reporting():
        report = run_demo(model, quiet=as_json)
    if as_json:
        _print_json(report)
    if not any(task["solved"] for task in report["tasks"]):
        raise typer.Exit(1)


@app.command()
def run(
    task: Annotated[str, typer.Argument(help="MODULE:TASK, e.g. reports:summarize.")],
    arg: Annotated[
        list[str] | None, typer.Option(help="An argument as name=value; value is JSON or text.")
    ] = None,
    model: Model = None,
    state: Annotated[
        Path | None, typer.Option(help="Keep variables and every step in this directory.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Call a task of a module in the current directory or on the path."""
    from agex.cli.run import call_task

    with _Reporting():
        result = call_task(task, arg or [], model, state=state, quiet=as_json)
    if as_json:
        _print_json(result)


@app.command("serve-mcp")
def serve_mcp(
    tasks: Annotated[list[str], typer.Argument(metavar="MODULE:TASK...", help="e.g. reports:summarize.")],
    model: Model = None,
    state: Annotated[
        Path | None, typer.Option(help="Keep variables and every step in this directory.")
    ] = None,
    http: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Serve Streamable HTTP here; HOST is 127.0.0.1 by default."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="With --http: a further name by which clients reach it.")
    ] = None,
) -> None:
    """Offer tasks as tools of an MCP server, over standard input and output or HTTP.

    The variable AGEX_MCP_TOKEN holds the token that clients of --http have to send, if they have to.
    """
    from agex.cli.serve import serve_tasks
    from agex.cli.serve_http import HttpAddress

    with _Reporting():
        address = HttpAddress.read(http, allow_host or ()) if http is not None else None
        serve_tasks(tasks, model, state=state, http=address)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Show what a bug report needs: versions, extras, models, and which isolation levels hold here."""
    from agex.cli.doctor import examine, show

    report = examine()
    if as_json:
        _print_json(report)
    else:
        show(report)


@bench.command()
def humaneval(  # noqa: PLR0917 - typer passes them by name
    model: Model = "local",
    limit: Annotated[int, typer.Option(min=1, max=164, help="The first N problems.")] = 164,
    turns: Annotated[int, typer.Option(min=1, help="Turns of one task.")] = 4,
    examples: Annotated[bool, typer.Option(help="Let the docstring's examples bind.")] = True,
    side: Annotated[
        list[str] | None,
        typer.Option(help="product, bare, samples or escalation; may be repeated. The first two by default."),
    ] = None,
    strong: Annotated[str | None, typer.Option(help="The second model of the side escalation.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write each result here as JSON; go on from those that it has.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run HumanEval through the product and through the bare model, judged by its own tests."""
    from agex.cli import humaneval

    with _Reporting():
        sides = side or humaneval.SIDES[:2]
        report = humaneval.compare(
            model,
            limit=limit,
            turns=turns,
            examples=examples,
            sides=sides,
            strong=strong,
            out=out,
            quiet=as_json,
        )
    if as_json:
        _print_json(report)


@bench.command("compare")
def compare_results(
    before: Annotated[Path, typer.Argument(help="A file of results, of one commit say.")],
    after: Annotated[Path | None, typer.Argument(help="Another; without it, sides of one file.")] = None,
    as_json: Json = False,
) -> None:
    """Compare two files of results side by side, or the sides of one file with its bare model."""
    from agex.cli.benchmark import compared, comparison_table

    with _Reporting():
        found = compared(before, after)
    if as_json:
        _print_json([each._asdict() for each in found])
        return
    typer.echo(comparison_table(found))
    for each in found:
        for what, names in (("won", each.won), ("lost", each.lost)):
            if names:
                typer.echo(f"{each.name}, {what}: {', '.join(names)}")


Directory = Annotated[Path, typer.Argument(help="The directory of a Disk store.")]
Branch = Annotated[str, typer.Option(help="The branch to look at.")]


@app.command()
def log(
    directory: Directory,
    branch: Branch = "main",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The newest N commits.")] = 20,
    as_json: Json = False,
) -> None:
    """List the commits of a state, newest first: task, turn, tokens and what changed."""
    from agex.cli import history

    with _Reporting(), history.opened(directory, branch) as state:
        entries = history.log(state, limit)
    _print(entries, history.print_log, as_json)


@app.command()
def show(
    directory: Directory,
    ref: Annotated[str, typer.Argument(help="A commit, branch or tag.")] = "main",
    as_json: Json = False,
) -> None:
    """Show one commit: its code, its output and the variables it left."""
    from agex.cli import history

    with _Reporting(), history.opened(directory) as state:
        entry = history.show(state, ref)
    _print(entry, history.print_commit, as_json)


@app.command()
def diff(
    directory: Directory,
    old: Annotated[
        str | None, typer.Argument(help="A commit, branch or tag; the parent of the head if not given.")
    ] = None,
    new: Annotated[str, typer.Argument(help="Another.")] = "main",
    as_json: Json = False,
) -> None:
    """Say which variables differ between two commits and, where they are small, how."""
    from agex.cli import history

    with _Reporting(), history.opened(directory) as state:
        since = state.checkout(new).commit.parent if old is None else old
        found = history.compare(state, since, new)
    _print(found, lambda entry, console: console.print(plain(entry["text"]), markup=False), as_json)


@app.command()
def fork(
    directory: Directory,
    name: Annotated[str | None, typer.Argument(help="Of the new branch.")] = None,
    at: Annotated[str | None, typer.Option(help="Where it begins: a commit, branch or tag.")] = None,
    branch: Branch = "main",
    as_json: Json = False,
) -> None:
    """Begin a branch."""
    from agex.cli import history

    with _Reporting(), history.opened(directory, branch) as state:
        made = history.fork(state, name, at)
    _print(
        made,
        lambda entry, console: console.print(f"{entry['branch']} at {entry['head']}", markup=False),
        as_json,
    )


@app.command("branch")
def branch_command(
    directory: Directory,
    delete: Annotated[str | None, typer.Option(metavar="NAME", help="Delete this branch.")] = None,
    as_json: Json = False,
) -> None:
    """List the branches of a state, those of conflicts last, or delete one."""
    from agex.cli import history

    if delete is not None:
        with _Reporting():
            gone = history.delete(directory, delete)
        text = f"Branch {gone['branch']} is deleted; it was at {gone['head']}."
        _print(gone, lambda _, console: console.print(plain(text), markup=False, soft_wrap=True), as_json)
        return
    with _Reporting(), history.opened(directory) as state:
        entries = history.branches(state)
    _print(entries, history.print_branches, as_json)


@app.command("runs")
def runs_command(directory: Directory, branch: Branch = "main", as_json: Json = False) -> None:
    """List the runs of a state: which go on, which wait for approval or an answer, which are over."""
    from agex.cli import history, runs

    with _Reporting(), history.opened(directory, branch) as state:
        entries = runs.list_runs(state)
    _print(entries, runs.print_runs, as_json)


@app.command()
def resume(  # noqa: PLR0917 - typer passes them by name
    directory: Directory,
    run: Annotated[str, typer.Argument(help="As `agex runs` lists it.")],
    task: Annotated[str, typer.Argument(help="MODULE:TASK, whose run it is.")],
    branch: Branch = "main",
    model: Model = None,
    answer: Annotated[str | None, typer.Option(help="To the question that it asked.")] = None,
    approve: Annotated[bool, typer.Option("--approve", help="Let the call be made that waits.")] = False,
    reject: Annotated[str | None, typer.Option(metavar="REASON", help="Let it not be made.")] = None,
    as_json: Json = False,
) -> None:
    """Go on with a run whose process ended, or that waits."""
    from agex.cli.runs import resume_run

    with _Reporting():
        result = resume_run(
            directory,
            run,
            task,
            branch=branch,
            model=model,
            answer=answer,
            approve=approve,
            reject=reject,
            quiet=as_json,
        )
    if as_json:
        _print_json(result)


@app.command()
def worker(  # noqa: PLR0917 - typer passes them by name
    module: Annotated[str, typer.Argument(help="The module that defines the tasks, e.g. orders.")],
    state: Annotated[str, typer.Option(help="A directory, postgresql://... or redis://...")],
    once: Annotated[
        bool, typer.Option("--once", help="End when there is nothing left to go on with.")
    ] = False,
    lease: Annotated[
        float, typer.Option(help="Seconds after which another worker goes on with what a lost one had.")
    ] = 30.0,
    poll: Annotated[float, typer.Option(min=0.01, help="Seconds between two looks at the store.")] = 1.0,
    attempts: Annotated[
        int, typer.Option(min=1, help="Processes that a run may take with it at one place; then it failed.")
    ] = 3,
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Carry on the open runs of a store, beside any number of other workers, until SIGTERM or Ctrl-C."""
    from agex.cli.worker import print_report, work

    def tell(report: dict[str, str]) -> None:
        if as_json:
            typer.echo(json.dumps(report))
        else:
            print_report(report)

    with _Reporting():
        failed = work(
            module, state, once=once, lease=lease, poll=poll, attempts=attempts, model=model, tell=tell
        )
    if once and failed:
        raise typer.Exit(1)


@app.command()
def replay(  # noqa: PLR0917 - typer passes them by name
    directory: Directory,
    run: Annotated[str, typer.Argument(help="As `agex runs` lists it.")],
    task: Annotated[str, typer.Argument(help="MODULE:TASK, whose run it is.")],
    branch: Branch = "main",
    model: Model = None,
    as_json: Json = False,
) -> None:
    """Run a run again from its beginning, and show the first difference; exit with 1 if there is one."""
    from agex.cli import runs

    with _Reporting():
        entry = runs.replay_run(directory, run, task, branch=branch, model=model)
    _print(entry, runs.print_replay, as_json)
    if not entry["same"]:
        raise typer.Exit(1)


@app.command()
def why(
    directory: Directory,
    run: Annotated[str, typer.Argument(help="As `agex runs` lists it.")],
    branch: Branch = "main",
    as_json: Json = False,
) -> None:
    """Show how a run came to its value: the code, the calls and the variables that it depends on."""
    from agex.agent.views.traces import why as trace_of
    from agex.cli import history, runs

    with _Reporting(), history.opened(directory, branch) as state:
        entry = trace_of(state, run)
    _print(entry, runs.print_why, as_json)


@app.command()
def freeze(  # noqa: PLR0917 - typer passes them by name
    task: Annotated[str, typer.Argument(help="MODULE:TASK, declared with reuse=True.")],
    state: Annotated[Path, typer.Option(help="The directory of the Disk store that has its solution.")],
    out: Annotated[Path, typer.Option(help="The module to write, or a folder; its tests go beside it.")],
    branch: Branch = "main",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    as_json: Json = False,
) -> None:
    """Write the code that solved a task as a Python module with tests, for a person to read."""
    from agex.cli.freeze import freeze_task

    with _Reporting():
        made = freeze_task(task, state, out, branch=branch, overwrite=overwrite)
    text = f"{made['module']} and {made['tests']} are written: read them, then run the tests."
    _print(made, lambda _, console: console.print(plain(text), markup=False, soft_wrap=True), as_json)


@app.command()
def backup(
    directory: Directory,
    out: Annotated[Path, typer.Argument(help="A directory that is not there yet.")],
    as_json: Json = False,
) -> None:
    """Copy a store, also while it is in use. To restore the copy, open it."""
    from agex.cli import history

    with _Reporting():
        made = history.back_up(directory, out)
    text = f"{out} holds a copy, checked."
    _print(made, lambda _, console: console.print(plain(text), markup=False, soft_wrap=True), as_json)


@app.command()
def fsck(directory: Directory, as_json: Json = False) -> None:
    """Check every commit, value and event of a store against its hashes; exit with 1 if one is damaged."""
    from agex.cli import history

    with _Reporting(), history.opened(directory) as state:
        found = history.check(state)
    text = "\n".join(found["problems"]) or "Nothing is damaged."
    _print(found, lambda _, console: console.print(text, markup=False), as_json)
    if not found["ok"]:
        raise typer.Exit(1)


@app.command()
def gc(
    directory: Directory,
    conflicts_older_than: Annotated[
        str | None,
        typer.Option(
            help="First delete the side branches of conflicts that are as old as this: 90s, 12h, 30d."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Drop commits that no branch and no tag reaches."""
    from agex.cli import history

    try:
        age = None if conflicts_older_than is None else history.length_of_time(conflicts_older_than)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--conflicts-older-than") from error
    with _Reporting(), history.opened(directory) as state:
        gone = history.collect(state, age)
    text = f"{gone['commits']} commits and {gone['chunks']} chunks dropped, {gone['bytes']} bytes"
    if age is not None:
        text = f"{gone['branches']} branches of conflicts deleted\n{text}"
    _print(gone, lambda _, console: console.print(text), as_json)


@app.command()
def shell(
    directory: Directory,
    branch: Branch = "main",
    command: Annotated[
        str | None, typer.Option("--command", "-c", help="Run this script instead of asking for lines.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Work on the files of a state in a shell; each line that changes something is a commit."""
    from agex.cli import history
    from agex.cli import shell as terminal

    def print_text(entry: dict[str, Any]) -> None:
        if entry["text"]:
            typer.echo(entry["text"].rstrip("\n"))

    lines = terminal.lines_of(f"{directory.name}$ ") if command is None else iter([command])
    with _Reporting(), history.opened(directory, branch) as state:
        code = terminal.work(state, lines, _print_json if as_json else print_text)
    if code:
        raise typer.Exit(1)


@app.command()
def studio(
    state: Annotated[
        str, typer.Argument(help="The directory of a Disk store, or postgresql://... or redis://...")
    ] = ".",
    branch: Branch = "main",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of 127.0.0.1; 0 takes a free one.")] = 0,
    as_json: Json = False,
) -> None:
    """Serve a page, to this machine only, that shows what the tasks of a state did, step by step."""
    from agex.cli.studio import serve

    def tell(address: str) -> None:
        typer.echo(json.dumps({"address": address}) if as_json else f"Open {address}\nCtrl-C ends it.")

    with _Reporting():
        serve(state, branch, port, tell)


@app.command("studio-site")
def studio_site(  # noqa: PLR0917 - typer passes them by name
    out: Annotated[Path, typer.Argument(help="A new folder; with --serve, also one that was made before.")],
    pyodide: Annotated[Path | None, typer.Option(help="The folder of the npm package pyodide.")] = None,
    wheels: Annotated[
        Path | None,
        typer.Option(help="A folder with the wheels of what agex needs there; its own is made of this one."),
    ] = None,
    module: Annotated[
        list[str] | None,
        typer.Option(help="One that the agent's code may import, of a wheel; as often as you like."),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Then serve the folder, to this machine only, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, help="Of 127.0.0.1, to serve on; the browser keeps a history for each."
        ),
    ] = 8000,
    as_json: Json = False,
) -> None:
    """Put the page for a browser tab into a folder, for any web server that serves files; or serve it."""
    from agex.cli.studio import make_site, serve_site

    def tell(address: str) -> None:
        typer.echo(
            json.dumps({"site": str(out), "address": address})
            if as_json
            else f"Open {address}\nCtrl-C ends it."
        )

    with _Reporting():
        if pyodide is not None or wheels is not None or module or not serve:
            make_site(out, pyodide, wheels, module or ())
        if serve:
            serve_site(out, port, tell)
            return
    typer.echo(
        json.dumps({"site": str(out)})
        if as_json
        else f"{out} holds the page. Look at it with: agex studio-site {out} --serve"
    )


class _Reporting:
    """Turn the library's errors into one line and an exit code."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> Literal[False]:
        if isinstance(error, KeyboardInterrupt):
            typer.echo("Cancelled. What was committed is kept.", err=True)
            raise typer.Exit(1)
        if isinstance(error, TaskError | TaskSuspended):
            _quit(error, 1)
        if isinstance(error, ModelNotConfigured | AgexError):
            _quit(error, 2)
        return False


def _quit(error: AgexError, code: int) -> NoReturn:
    typer.echo(f"{type(error).__name__}: {error}", err=True)
    raise typer.Exit(code)


def _print(document: Any, show: Callable[[Any, Console], object], as_json: bool) -> None:
    if as_json:
        _print_json(document)
    else:
        show(document, Console())


def _print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2))
