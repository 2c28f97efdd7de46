"""Texts that libraries of plain Python fill in by ``str.format`` read no private attributes for guest code.

Stopped by: sandbox.libraries.templates, sandbox.stdlib.string_format.
"""

from __future__ import annotations

import io
import logging
import types

import matplotlib as mpl
import pandas as pd
import pytest
import rich
import rich.progress
import seaborn as sns
import tqdm
from matplotlib import ticker

from agex.sandbox import Policy, Sandbox

SECRET = "s3cr3t"
GLOBALS = "__globals__[logging].os.environ[AGEX_SECRET]"
WALKS = {
    "titles of seaborn": (
        sns,
        (
            "import seaborn as sns\ng = sns.FacetGrid(frame, col='b')\n"
            f"g.set_titles('{{col_name.set_axis.{GLOBALS}}}')\nout = g.axes.flat[0].get_title()"
        ),
    ),
    "titles of seaborn by a keyword": (
        sns,
        (
            "import seaborn as sns\ng = sns.FacetGrid(frame, col='b')\n"
            f"g.set_titles(col_template='{{col_name.set_axis.{GLOBALS}}}')\nout = g.axes.flat[0].get_title()"
        ),
    ),
    "a column of rich": (
        rich,
        (
            "import rich.progress as p\nc = p.TextColumn('{task.stop.__globals__}{task.__class__.reset.__globals__}')\n"
            "t = p.Progress(c)\nt.add_task('x')\nout = str(c.render(t.tasks[0]))"
        ),
    ),
    "a bar of tqdm": (
        tqdm,
        (
            "import tqdm\nF = '{bar.__format__.__globals__[sys].modules[os].environ[AGEX_SECRET]}'\n"
            "out = tqdm.tqdm.format_meter(1, 2, 3, ncols=20, bar_format=F)"
        ),
    ),
    "a bar of tqdm in a specification": (
        tqdm,
        (
            "import tqdm\nF = '{bar:{bar.__format__.__globals__[sys].modules[os].environ[AGEX_SECRET]}}'\n"
            "out = tqdm.tqdm.format_meter(1, 2, 3, ncols=20, bar_format=F)"
        ),
    ),
    "a record of logging": (
        logging,
        (
            "import logging\nF = '{b.makeRecord.__globals__[os].environ[AGEX_SECRET]}'\n"
            "out = logging.Formatter(F, style='{').format(logging.makeLogRecord({'b': logging.getLogger('a')}))"
        ),
    ),
}


@pytest.fixture
def frame(monkeypatch):
    monkeypatch.setenv("AGEX_SECRET", SECRET)
    return pd.DataFrame({"a": [1], "b": [ticker.ScalarFormatter()]})


def opened(module: types.ModuleType, *, strict: bool = False) -> Policy:
    policy = Policy.default(strict=strict)
    # A setting beside the defaults: what agex brings along for `logging` is another module.
    policy.module(module, exclude=("_*", "*._*", "nothing*"))
    return policy


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("way", WALKS)
def test_a_template_walks_to_nothing_of_the_hosts(way, strict, frame):
    module, source = WALKS[way]
    result = Sandbox(opened(module, strict=strict)).exec(source, {"frame": frame})
    assert SECRET not in f"{result.namespace.get('out')}{result.error}"
    assert result.error is not None


def test_templates_are_of_use_for_guest_code_and_as_ever_for_the_host(frame):
    titles = "import seaborn as sns\ng = sns.FacetGrid(frame, col='a')\n"
    titles += "g.set_titles('{col_var}: {col_name:.1f}')\ng.axes.flat[0].get_title()"
    column = "import rich.progress as p\nc = p.TextColumn('{task.description} {task.percentage:.0f}')\n"
    column += "t = p.Progress(c)\nt.add_task('x', total=2, completed=1)\nstr(c.render(t.tasks[0]))"
    bar = "import io, tqdm\nf = io.StringIO()\nfor _ in tqdm.tqdm(range(3), desc='d', file=f): pass\n'3/3' in f.getvalue()"
    record = (
        "import logging\nlogging.Formatter('{msg}', style='{').format(logging.makeLogRecord({'msg': 'a'}))"
    )
    assert Sandbox(opened(sns)).exec(titles, {"frame": frame}).value == "a: 1.0"
    assert Sandbox(opened(rich)).exec(column).value == "x 50"
    assert Sandbox(opened(tqdm)).exec(bar).value is True
    assert Sandbox(opened(logging)).exec(record).value == "a"
    assert tqdm.tqdm.format_meter(1, 2, 3, bar_format="{bar.__class__.__name__}", ncols=9) == "FormatRep"
    assert list(tqdm.tqdm(range(2), file=io.StringIO())) == [0, 1]
    assert rich.progress.TextColumn("{task.__doc__}").text_format == "{task.__doc__}"


MADE = f"import matplotlib.ticker as mt\nF, x = mt.StrMethodFormatter('{{x.set_axis.{GLOBALS}}}'), mt.ScalarFormatter()\n"


@pytest.mark.parametrize(
    ("source", "use"),
    [
        ("made = F", lambda made, x: made(x)),
        ("import functools\nmade = functools.partial(F, x)", lambda made, x: made()),
        ("made = map(F, [x])", lambda made, x: next(made)),
        ("import copy\nmade = copy.copy(F)", lambda made, x: made(x)),
        ("class G(mt.StrMethodFormatter): pass\nmade = G(F.fmt)", lambda made, x: made(x)),
    ],
    ids=["itself", "a partial", "an iterator", "a copy", "a subclass"],
)
def test_a_formatter_that_guest_code_made_walks_to_nothing_where_the_host_calls_it_later(source, use, frame):
    names = Sandbox(opened(mpl)).exec(MADE + source).namespace
    with pytest.raises(AttributeError, match=r"not accessible|reads no attribute"):
        use(names["made"], names["x"])
    assert ticker.StrMethodFormatter("{x.real:.1f}")(2.0) == "2.0"
