"""Executes a notebook that shows agex' objects, in a process of its own, and exports it as a page.

Called as ``python notebook.py DIRECTORY``; writes ``notebook.ipynb``, ``light.html`` and ``dark.html``. A
kernel has threads, sockets of loopback and warnings of its own, which the suite refuses.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbconvert import HTMLExporter

SETUP = '''
import pandas as pd
import plotly.express as px
from agex import Agent, Live, TaskFail, Versioned
from agex.testing import ScriptedModel

sales = pd.DataFrame({"region": ["north", "east", "north", "west"] * 2_500, "units": range(10_000)})
TURNS = [
    "First I look at the columns.\\n```python\\nprint(sales.columns)\\nsales.total()\\n```",
    """```python
def busiest(sales, count):
    # the regions with the most units
    totals = sales.groupby("region")["units"].sum()
    return totals.nlargest(count).reset_index()
```""",
]
state = Versioned()
analyst = Agent(name="analyst", model=ScriptedModel(TURNS), state=state, primer="Be exact.")
analyst.module(pd)


@analyst.task
def busiest(sales: pd.DataFrame, count: int) -> pd.DataFrame:
    """Find the regions with the most units, largest first."""


FAILS = "```python\\ntask_fail('<b>no</b> such <script>alert(1)</script>')\\n```"
clerk = Agent(name="clerk", model=ScriptedModel([FAILS]))


@clerk.task
def look_up(name: str) -> int:
    """Look a number up."""


PLOTS = "```python\\ntask_success(px.bar(x=['north', 'east'], y=[5, 3]))\\n```"
plotter = Agent(name="plotter", model=ScriptedModel([PLOTS]))
plotter.module(px, name="plotly.express")


@plotter.task(setup="import plotly.express as px")
def plot() -> object:
    """Plot the sales."""


def failed():
    try:
        look_up("<i>Ann</i>")
    except TaskFail as error:
        return error.run
'''

EDITS = """
state["notes"] = "first line\\nsecond line\\n"
state.commit("by hand")
state["notes"] = "first line\\nthird line\\n"
state.files["report/summary.md"] = b"# Summary"
state.commit("edited")
state
"""

CELLS = [
    "analyst",
    "busiest",
    "run = busiest.run(sales, 2)\nrun",
    "run.events[1]",
    "run.events[2]",
    EDITS.strip(),
    "state.history()",
    "by_hand, first = list(state.history())[1::2]\nstate.diff(by_hand)",
    "state.checkout(first)",
    "first",
    "failed()",
    "plot.run()",
    "Live({'rows': [1, 2, 3], 'frame': sales})",
    "print(run)",
]


def main(folder: Path) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in (SETUP.strip(), *CELLS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    sockets = {"transport": "ipc", "ip": str(folder / "ipc")}  # files instead of ports
    kernel = AsyncKernelManager(kernel_name="python3", **sockets)
    NotebookClient(notebook, km=kernel, timeout=120).execute()
    nbformat.write(notebook, folder / "notebook.ipynb")
    for theme in ("light", "dark"):
        exporter = HTMLExporter(theme=theme, mathjax_url="", require_js_url="", exclude_input_prompt=True)
        page, _ = exporter.from_notebook_node(notebook)
        (folder / f"{theme}.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
