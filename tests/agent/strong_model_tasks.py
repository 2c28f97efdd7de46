"""Thirty tasks with the answers that a strong model would write, natural code that knows no rule of the sandbox.

Each answer is right for CPython with the libraries installed. A turn whose code fails here is therefore wasted
by the product. Run as a script, it lists those turns.
"""

from __future__ import annotations

import asyncio
import enum
import json
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, NamedTuple, TypedDict

import inhouse
import matplotlib.figure
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from agex.agent import Agent, OutputEvent
from agex.errors import AgexError
from agex.state import Live
from agex.testing import ScriptedModel

Declare = Callable[[Agent], Any]


@dataclass(frozen=True)
class Scenario:
    """One task, or several with one state."""

    declare: Declare
    """Registers what the task needs and returns a function that carries it out and gives its value."""
    answers: tuple[str, ...]
    expected: Any
    settings: dict[str, Any] = field(default_factory=dict)


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Priority(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Line(BaseModel):
    sku: str
    count: int = Field(ge=1)


class Invoice(BaseModel):
    number: str = Field(pattern=r"^R-\d+$")
    day: date
    lines: list[Line]
    total: float = Field(ge=0)


@dataclass
class Stats:
    mean: float
    median: float
    worst: str


class Extremes(NamedTuple):
    low: float
    high: float


class Word(TypedDict):
    text: str
    count: int


SALES = pd.DataFrame(
    {
        "day": pd.date_range("2024-01-01", periods=60, freq="D"),
        "shop": ["north", "south", "east"] * 20,
        "units": list(range(1, 61)),
        "price": [2.0, 3.0, None] * 20,
    }
)
TEXT = "the cat and the dog and the bird"


def simple(
    function: Callable[..., Any], *args: Any, use: Callable[[Agent], Any] = lambda agent: None
) -> Declare:
    """Declare a task over an empty function."""

    def declare(agent: Agent) -> Any:
        use(agent)
        task = agent.task(function)
        return lambda: task(*args)

    return declare


def registered(*modules: Any) -> Callable[[Agent], Any]:
    return lambda agent: [agent.module(module) for module in modules]


def revenue(sales: pd.DataFrame) -> dict[str, float]:
    """Return the revenue of each shop; a missing price counts as 2.5."""


def monthly(sales: pd.DataFrame) -> pd.DataFrame:
    """Return one row a month with the units sold, in the columns month and units."""


def invoice(text: str) -> Invoice:
    """Read the invoice."""


def stats(values: dict[str, float]) -> Stats:
    """Return the statistics; worst is the key of the lowest value."""


def extremes(values: list[float]) -> Extremes:
    """Return the lowest and the highest value."""


def words(text: str) -> list[Word]:
    """Count the words, most frequent first, ties by name."""


def classify(text: str) -> Color:
    """Return the color that the text speaks of."""


def urgent(titles: list[str]) -> dict[str, Priority]:
    """Return the priority of each title: HIGH if it says 'now'."""


def fibonacci(n: int) -> int:
    """Return the n-th Fibonacci number.

    >>> fibonacci(10)
    55
    """


def primes(limit: int) -> list[int]:
    """Return the primes below limit."""


def solve(a: list[list[float]], b: list[float]) -> list[float]:
    """Solve the linear equations."""


def chart(sales: pd.DataFrame) -> matplotlib.figure.Figure:
    """Draw the units by day, with a title."""


def report(sales: pd.DataFrame) -> str:
    """Write report.md with the units of each shop, and return its text."""


def levels(text: str) -> Literal["low", "high"]:
    """Return the level."""


def parse(rows: str) -> list[dict[str, str]]:
    """Parse the CSV text."""


def compact(data: dict[str, Any]) -> str:
    """Return the data as JSON with sorted keys."""


def schedule(days: list[date]) -> dict[str, int]:
    """Count the days by weekday name."""


def shortest(edges: list[tuple[str, str, float]], start: str, end: str) -> float:
    """Return the length of the shortest path."""


def tree(paths: list[str]) -> dict[str, Any]:
    """Return the paths as nested dicts."""


def rates(numbers: list[float]) -> list[float]:
    """Return the change from each number to the next in percent, rounded to one digit."""


def reorder(stock: inhouse.Warehouse) -> list[inhouse.Item]:
    """Return the tools, cheapest first."""


def cheapest_item(stock: inhouse.Warehouse) -> inhouse.Item:
    """Return the cheapest item."""


def customers() -> list[str]:
    """Return the names of the customers of Oslo."""


def pick(names: list[str]) -> str:
    """Return the longest name."""


def safe(values: list[str]) -> list[int]:
    """Return the values that are whole numbers."""


def timed(n: int) -> bool:
    """Return whether summing n numbers takes less than ten seconds."""


def correlation(sales: pd.DataFrame) -> float:
    """Return the correlation of units and price, rounded to three digits."""


def tests(source: str) -> bool:
    """Write the function to a module, test it, and return whether the tests pass."""


STOCK = inhouse.Warehouse(
    [
        inhouse.Item("a01", "hammer", 12.5, inhouse.Category.TOOL),
        inhouse.Item("b02", "screw", 0.1),
        inhouse.Item("c03", "saw", 9.0, inhouse.Category.TOOL),
    ]
)


def mailing(agent: Agent) -> Any:
    sent: list[str] = []

    @agent.fn
    def send(to: str, subject: str, body: str = "") -> None:
        """Send a message."""
        sent.append(to)

    def remind(addresses: list[str]) -> int:
        """Send a reminder to each address and return how many were sent."""

    task = agent.task(remind)
    return lambda: (task(["a@x.org", "b@x.org"]), sent)


def asked(agent: Agent) -> Any:
    @agent.fn
    async def fetch_price(name: str) -> float:
        """Return today's price."""
        await asyncio.sleep(0)
        return float(len(name))

    async def cheapest(names: list[str]) -> str:
        """Return the cheapest of the things."""

    task = agent.task(cheapest)
    return lambda: asyncio.run(task(["pear", "fig", "banana"]))


def database(agent: Agent) -> Any:
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE customers (name TEXT, city TEXT);"
        "INSERT INTO customers VALUES ('Ada', 'Oslo'), ('Bob', 'Rome'), ('Cy', 'Oslo');"
    )
    agent.module(connection, name="db")
    return agent.task(customers)


def kept(agent: Agent) -> Any:
    state = Live()

    def clean(text: str) -> str:
        """Write a function that normalizes text, and return the text normalized."""

    def again(text: str) -> str:
        """Normalize it with the function of before."""

    first, second = agent.task(clean), agent.task(again)
    return lambda: (first("  A  b ", state=state), second(" C   D", state=state))


SCENARIOS: dict[str, Scenario] = {
    "revenue": Scenario(
        simple(revenue, SALES, use=registered(pd)),
        (
            "print(sales.head())\nprint(sales.isna().sum())\nprint(sales.dtypes)",
            "df = sales.copy()\ndf['price'] = df['price'].fillna(2.5)\ndf['revenue'] = df['units'] * df['price']\n"
            "result = df.groupby('shop')['revenue'].sum().round(2).to_dict()\nprint(result)\ntask_success(result)",
        ),
        {"east": 1575.0, "north": 1180.0, "south": 1830.0},
    ),
    "monthly": Scenario(
        simple(monthly, SALES, use=registered(pd)),
        (
            "import numpy as np\nimport pandas as pd\n\ndf = sales.assign(month=sales['day'].dt.strftime('%Y-%m'))\n"
            "out = df.groupby('month', as_index=False)['units'].sum()\nassert np.isfinite(out['units']).all()\n"
            "print(out)\ntask_success(out)",
        ),
        [{"month": "2024-01", "units": 496}, {"month": "2024-02", "units": 1334}],
    ),
    "invoice": Scenario(
        simple(invoice, "Invoice R-17 of 2024-03-05: 2 x bolt, 1 x nut. Total 4.50"),
        (
            "import re\nfrom datetime import date\n\nnumber = re.search(r'R-\\d+', text).group()\n"
            "day = date.fromisoformat(re.search(r'\\d{4}-\\d\\d-\\d\\d', text).group())\n"
            "lines = [{'sku': sku, 'count': int(n)} for n, sku in re.findall(r'(\\d+) x (\\w+)', text)]\n"
            "total = float(re.search(r'Total ([\\d.]+)', text).group(1))\n"
            "task_success(Invoice(number=number, day=day, lines=[Line(**line) for line in lines], total=total))",
        ),
        Invoice(
            number="R-17",
            day=date(2024, 3, 5),
            lines=[Line(sku="bolt", count=2), Line(sku="nut", count=1)],
            total=4.5,
        ),
    ),
    "invoice as a dict": Scenario(
        simple(invoice, "R-1"),
        (
            "import datetime\ntask_success({'number': 'R-1', 'day': datetime.date(2024, 1, 2), 'lines': [], 'total': 0.0})",
        ),
        Invoice(number="R-1", day=date(2024, 1, 2), lines=[], total=0.0),
    ),
    "stats": Scenario(
        simple(stats, {"a": 3.0, "b": 1.0, "c": 5.0}),
        (
            "import statistics\n\ntask_success(Stats(mean=statistics.mean(values.values()), "
            "median=statistics.median(values.values()), worst=min(values, key=values.get)))",
        ),
        Stats(3.0, 3.0, "b"),
    ),
    "extremes": Scenario(
        simple(extremes, [3.0, 1.0, 2.0]),
        ("def extremes(values: list[float]) -> Extremes:\n    return Extremes(min(values), max(values))",),
        Extremes(1.0, 3.0),
    ),
    "words": Scenario(
        simple(words, TEXT),
        (
            "from collections import Counter\n\ncounts = Counter(text.split())\n"
            "ranked = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))\n"
            "task_success([Word(text=w, count=c) for w, c in ranked])",
        ),
        [
            {"text": "the", "count": 3},
            {"text": "and", "count": 2},
            {"text": "bird", "count": 1},
            {"text": "cat", "count": 1},
            {"text": "dog", "count": 1},
        ],
    ),
    "classify": Scenario(
        simple(classify, "a green door"),
        ("task_success(next(c for c in Color if c.value in text.lower()))",),
        Color.GREEN,
    ),
    "urgent": Scenario(
        simple(urgent, ["Fix it now", "Later"]),
        ("task_success({t: Priority.HIGH if 'now' in t.lower() else Priority.LOW for t in titles})",),
        {"Fix it now": Priority.HIGH, "Later": Priority.LOW},
    ),
    "fibonacci": Scenario(
        simple(fibonacci, 50),
        (
            "from functools import lru_cache\n\n@lru_cache(maxsize=None)\ndef fib(n):\n"
            "    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\nprint(fib(10))",
            "def fibonacci(n: int) -> int:\n    return fib(n)",
        ),
        12586269025,
    ),
    "primes": Scenario(
        simple(primes, 30),
        (
            "import math\n\ndef is_prime(n):\n    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))\n\n"
            "if __name__ == '__main__':\n    task_success([n for n in range(limit) if is_prime(n)])",
            "task_success([n for n in range(limit) if is_prime(n)])",
        ),
        [2, 3, 5, 7, 11, 13, 17, 19, 23, 29],
    ),
    "solve": Scenario(
        simple(solve, [[2.0, 0.0], [0.0, 4.0]], [2.0, 8.0], use=registered(np)),
        ("x = np.linalg.solve(np.array(a), np.array(b))\ntask_success(x.tolist())",),
        [1.0, 2.0],
    ),
    "chart": Scenario(
        simple(chart, SALES, use=registered(plt, pd)),
        (
            "import matplotlib.pyplot as plt\nimport matplotlib.dates as mdates\n\nfig, ax = plt.subplots(figsize=(8, 4))\n"
            "ax.plot(sales['day'], sales['units'])\nax.xaxis.set_major_formatter(mdates.DateFormatter('%b %d'))\n"
            "ax.set_title('Units by day')\nfig.autofmt_xdate()\nfig.tight_layout()\ntask_success(fig)",
        ),
        "Units by day",
    ),
    "report": Scenario(
        simple(report, SALES, use=registered(pd)),
        (
            "from pathlib import Path\n\ntotals = sales.groupby('shop')['units'].sum().sort_values(ascending=False)\n"
            "lines = ['# Units', ''] + [f'- {shop}: {units}' for shop, units in totals.items()]\n"
            "Path('report.md').write_text('\\n'.join(lines))\nprint(Path('report.md').read_text())",
            "import os\nprint(os.listdir('.'))\nwith open('report.md') as f:\n    task_success(f.read())",
        ),
        "# Units\n\n- east: 630\n- south: 610\n- north: 590",
    ),
    "levels": Scenario(
        simple(levels, "very high indeed"),
        ("level: Literal['low', 'high'] = 'high' if 'high' in text else 'low'\ntask_success(level)",),
        "high",
    ),
    "parse": Scenario(
        simple(parse, "a,b\n1,2\n3,4\n"),
        ("import csv, io\ntask_success(list(csv.DictReader(io.StringIO(rows))))",),
        [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}],
    ),
    "compact": Scenario(
        simple(compact, {"b": [1], "a": {"x": None}}),
        ("import json\ntask_success(json.dumps(data, sort_keys=True, separators=(',', ':')))",),
        '{"a":{"x":null},"b":[1]}',
    ),
    "schedule": Scenario(
        simple(schedule, [date(2024, 1, 1), date(2024, 1, 8), date(2024, 1, 2)]),
        (
            "import calendar\nfrom collections import defaultdict\n\ncounts = defaultdict(int)\nfor day in days:\n"
            "    counts[calendar.day_name[day.weekday()]] += 1\ntask_success(dict(counts))",
        ),
        {"Monday": 2, "Tuesday": 1},
    ),
    "shortest": Scenario(
        simple(shortest, [("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 5.0)], "a", "c"),
        (
            "import heapq\nfrom collections import defaultdict\n\ngraph = defaultdict(list)\nfor u, v, w in edges:\n"
            "    graph[u].append((v, w))\n    graph[v].append((u, w))\n\ndef dijkstra(source, target):\n"
            "    queue, seen = [(0.0, source)], set()\n    while queue:\n        cost, node = heapq.heappop(queue)\n"
            "        if node == target:\n            return cost\n        if node in seen:\n            continue\n"
            "        seen.add(node)\n        for other, weight in graph[node]:\n"
            "            heapq.heappush(queue, (cost + weight, other))\n    raise ValueError('no path')\n\n"
            "task_success(dijkstra(start, end))",
        ),
        3.0,
    ),
    "tree": Scenario(
        simple(tree, ["a/b", "a/c/d"]),
        (
            "root: dict = {}\nfor path in paths:\n    node = root\n    for part in path.split('/'):\n"
            "        node = node.setdefault(part, {})\nimport pprint\npprint.pprint(root)\ntask_success(root)",
        ),
        {"a": {"b": {}, "c": {"d": {}}}},
    ),
    "rates": Scenario(
        simple(rates, [100.0, 110.0, 99.0]),
        (
            "from itertools import pairwise\n\ntask_success([round((b - a) / a * 100, 1) for a, b in pairwise(numbers)])",
        ),
        [10.0, -10.0],
    ),
    "reorder": Scenario(
        simple(reorder, STOCK, use=lambda agent: agent.module(inhouse, name="inhouse")),
        (
            "from inhouse import Category\n\nprint(len(stock), [i.name for i in stock])\n"
            "tools = stock.items(Category.TOOL)\ntask_success(sorted(tools, key=lambda item: item.price))",
        ),
        ["saw", "hammer"],
    ),
    "cheapest item": Scenario(
        simple(cheapest_item, STOCK),
        (
            "items = list(stock)\nbest = min(items, key=lambda i: i.price)\nprint(best, Category.PART)\ntask_success(best)",
        ),
        "screw",
    ),
    "mailing": Scenario(
        mailing,
        (
            "count = 0\nfor address in addresses:\n    send(address, subject='Reminder', body='Please answer.')\n"
            "    count += 1\ntask_success(count)",
        ),
        (2, ["a@x.org", "b@x.org"]),
    ),
    "async": Scenario(
        asked,
        (
            "import asyncio\n\nasync def price(name):\n    return await fetch_price(name), name\n\n"
            "prices = await asyncio.gather(*(price(n) for n in names))\ntask_success(min(prices)[1])",
        ),
        "fig",
    ),
    "database": Scenario(
        database,
        (
            "cursor = db.execute(\"SELECT name FROM customers WHERE city = ? ORDER BY name\", ('Oslo',))\n"
            "task_success([row[0] for row in cursor.fetchall()])",
        ),
        ["Ada", "Cy"],
    ),
    "kept": Scenario(
        kept,
        (
            "import re\n\ndef normalize(s):\n    return re.sub(r'\\s+', ' ', s).strip().lower()\n\ntask_success(normalize(text))",
            "task_success(normalize(text))",
        ),
        ("a b", "c d"),
    ),
    "safe": Scenario(
        simple(safe, ["1", "x", "3.5", "-2"]),
        (
            "def to_int(value):\n    try:\n        return int(value)\n    except ValueError as e:\n        print('skip', e)\n"
            "        return None\n\ntask_success([n for n in map(to_int, values) if n is not None])",
        ),
        [1, -2],
    ),
    "timed": Scenario(
        simple(timed, 10_000),
        (
            "import time\nimport timeit\n\nstart = time.perf_counter()\ntotal = sum(range(n))\n"
            "elapsed = time.perf_counter() - start\nprint(f'{elapsed:.3f}s', timeit.timeit(lambda: sum(range(n)), number=10))\n"
            "task_success(elapsed < 10)",
        ),
        True,
    ),
    "correlation": Scenario(
        simple(correlation, SALES, use=registered(pd)),
        (
            "clean = sales.dropna()\nprint(clean.describe())",
            "r = np.corrcoef(clean['units'], clean['price'])[0, 1]\ntask_success(round(float(r), 3))",
        ),
        0.029,
    ),
    "tests": Scenario(
        simple(tests, "def add(a, b):\n    return a + b\n"),
        (
            "with open('calc.py', 'w') as f:\n    f.write(source)\nimport calc\nimport unittest\n\n"
            "class TestAdd(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n\n"
            "suite = unittest.defaultTestLoader.loadTestsFromTestCase(TestAdd)\n"
            "result = unittest.TextTestRunner().run(suite)\ntask_success(result.wasSuccessful())",
            "import calc\nassert calc.add(1, 2) == 3\ntask_success(True)",
        ),
        True,
    ),
}


def played(name: str) -> tuple[Any, int, list[str]]:
    """Carry out a scenario; return its value, how many turns it took and the texts of those wasted."""
    scenario = SCENARIOS[name]
    # A wasted turn is answered with the next answer, or with the same again.
    queue = list(scenario.answers)
    model = ScriptedModel([f"```python\n{code}\n```" for code in queue])
    agent = Agent(model=model, max_iterations=len(queue), **scenario.settings)
    texts: list[str] = []

    def note(event: Any) -> None:
        if isinstance(event, OutputEvent) and event.error:
            texts.append(event.text)

    agent_run = scenario.declare(_Noting(agent, note))
    try:
        value = agent_run()
    except AgexError as error:
        value = error
    return _plain(value), len(model.requests), texts


class _Noting:
    """An agent whose tasks tell their events."""

    def __init__(self, agent: Agent, note: Callable[[Any], None]) -> None:
        self._agent, self._note = agent, note

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    def task(self, function: Callable[..., Any]) -> Any:
        task = self._agent.task(function)
        return lambda *args, **kwargs: task(*args, on_event=self._note, **kwargs)


def _plain(value: Any) -> Any:
    if isinstance(value, pd.DataFrame):
        return value.to_dict("records")
    if isinstance(value, matplotlib.figure.Figure):
        return value.axes[0].get_title()
    if isinstance(value, inhouse.Item):
        return value.name
    if isinstance(value, list) and value and isinstance(value[0], inhouse.Item):
        return [each.name for each in value]
    return value


def main() -> None:
    """Print the wasted turns, and how many there were of all."""
    wasted = turns = right = 0
    for name, scenario in SCENARIOS.items():
        value, count, texts = played(name)
        turns += count
        wasted += len(texts)
        right += value == scenario.expected
        for text in texts:
            sys.stdout.write(f"{name}: {text.strip().splitlines()[-1]}\n")
        if value != scenario.expected:
            sys.stdout.write(f"{name}: gave {value!r}\n")
    sys.stdout.write(
        json.dumps({"tasks": len(SCENARIOS), "right": right, "turns": turns, "wasted": wasted}) + "\n"
    )


if __name__ == "__main__":
    main()
