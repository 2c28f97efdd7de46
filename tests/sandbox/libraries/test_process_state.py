"""A setting of the process that a registered library changes is the host's again after the run.

Stopped by: sandbox.libraries.process_state, sandbox.libraries.process_settings.
"""

from __future__ import annotations

import asyncio
import copyreg
import decimal
import email.charset
import gc
import locale
import logging
import math
import mimetypes
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import types
import warnings

import matplotlib as mpl
import matplotlib.colors
import matplotlib.pyplot as plt
import matplotlib.units
import networkx as nx
import numpy as np
import pandas as pd
import PIL.Image
import plotly.express as px
import plotly.io as pio
import polars as pl
import pytest
import seaborn as sns
import seaborn.objects as so
import sklearn
import yaml

from agex.sandbox import Limits, Policy, Sandbox
from agex.sandbox.libraries.process_state import may_change

SNS = "import seaborn as sns\n"
YAML = "import yaml\n"
LOGGER = logging.getLogger("agex.tests.process_state")


def rc(key="lines.linewidth"):
    return dict.copy(dict(mpl.rcParams.items()))[key]


def _rename_a_key():
    """Rename a key of a table, whose values and last key stay."""
    table = dict(shutil._ARCHIVE_FORMATS)
    first, *_ = table
    shutil._ARCHIVE_FORMATS.clear()
    shutil._ARCHIVE_FORMATS.update({"mine" if key == first else key: value for key, value in table.items()})


def _reverse_filters():
    warnings.filters.reverse()


def _colors():
    return {name: matplotlib.colors.to_rgb(name) for name in "bgrmyck"}


def _switch_backend():
    plt.switch_backend("svg")


def _font():
    mpl.rcParams["font.sans-serif"].insert(0, "Mine")


def _named_color():
    matplotlib.colors.get_named_colors_mapping()["b"] = (0.5, 0.5, 0.5)


def _own_cmap():
    mpl.colormaps.register(mpl.colormaps["viridis"], name="mine")


def _units():
    matplotlib.units.registry[complex] = matplotlib.units.ConversionInterface()


def _made_of(self, of):
    """Do nothing."""


def _numpy_state():
    return np.random.get_state()[1].tobytes()


def _accessor():
    pd.api.extensions.register_series_accessor("mine")(type("Mine", (), {"__init__": _made_of}))


def _dtype():
    kind = type("Mine", (pd.api.extensions.ExtensionDtype,), {"name": "mine", "type": object})
    pd.api.extensions.register_extension_dtype(kind)


def _is_dtype():
    try:
        return str(pd.api.types.pandas_dtype("mine"))
    except TypeError:
        return None


def _filters():
    warnings.simplefilter("ignore", ResourceWarning)


def _show_nothing():
    warnings.showwarning = print


def _decimals():
    decimal.DefaultContext.prec = 5


def _constructor():
    yaml.SafeLoader.add_constructor("!mine", lambda loader, node: 1)


def _template():
    pio.templates["mine"] = {}


def _default_width():
    px.defaults.width = 33


def _theme():
    so.Plot.config.theme["lines.linewidth"] = 9


def _handler():
    LOGGER.addHandler(logging.NullHandler())


class Handled:
    """A class of the host."""


OWN = {
    "rcParams": (lambda: mpl.rcParams.update({"lines.linewidth": 7}), rc),
    "a list in rcParams": (_font, lambda: list(rc("font.sans-serif"))),
    "defaults of rcParams": (
        lambda: mpl.rcParamsDefault.update({"lines.linewidth": 7}),
        lambda: mpl.rcParamsDefault["lines.linewidth"],
    ),
    "the cycle of colours": (
        lambda: mpl.rcParams.update({"axes.prop_cycle": mpl.cycler(color=["red"])}),
        lambda: rc("axes.prop_cycle"),
    ),
    "a style": (lambda: plt.style.use("ggplot"), lambda: rc("axes.facecolor")),
    "interactive mode": (plt.ion, mpl.is_interactive),
    "the backend": (_switch_backend, lambda: (mpl.get_backend(), plt.get_backend(), plt._backend_mod.__name__)),
    "the units": (_units, lambda: complex in matplotlib.units.registry),
    "a named colour": (_named_color, _colors),
    "a colormap": (_own_cmap, lambda: "mine" in mpl.colormaps),
    "the theme of seaborn.objects": (_theme, lambda: so.Plot.config.theme["lines.linewidth"]),
    "an option of pandas": (
        lambda: pd.set_option("display.max_rows", 3),
        lambda: pd.get_option("display.max_rows"),
    ),
    "an attribute of pandas' options": (
        lambda: setattr(pd.options.display, "width", 3),
        lambda: pd.options.display.width,
    ),
    "an accessor of pandas": (_accessor, lambda: hasattr(pd.Series, "mine")),
    "a dtype of pandas": (_dtype, _is_dtype),
    "errors of numpy": (lambda: np.seterr(all="raise"), np.geterr),
    "printing of numpy": (lambda: np.set_printoptions(precision=2), lambda: np.get_printoptions()["precision"]),
    "the buffer of numpy": (lambda: np.setbufsize(4096), np.getbufsize),
    "the generator of numpy": (lambda: np.random.seed(1), _numpy_state),
    "the state of numpy's generator": (
        lambda: np.random.set_state(np.random.RandomState(1).get_state()),
        _numpy_state,
    ),
    "Python's generator": (lambda: random.seed(1), random.getstate),
    "the state of Python's generator": (lambda: random.setstate(random.Random(2).getstate()), random.getstate),
    "filters of warnings": (_filters, lambda: list(warnings.filters)),
    "what shows warnings": (_show_nothing, lambda: warnings.showwarning),
    "the context of decimals": (_decimals, lambda: decimal.DefaultContext.prec),
    "the locale": (lambda: locale.setlocale(locale.LC_ALL, "POSIX"), lambda: locale.setlocale(locale.LC_ALL)),
    "the config of sklearn": (lambda: sklearn.set_config(transform_output="pandas"), sklearn.get_config),
    "the config of polars": (lambda: pl.Config.set_fmt_float("full"), lambda: pl.Config.state()["set_fmt_float"]),
    "a namespace of polars": (
        lambda: pl.api.register_series_namespace("mine")(type("Mine", (), {"__init__": _made_of})),
        lambda: hasattr(pl.Series, "mine"),
    ),
    "the template of plotly": (lambda: setattr(pio.templates, "default", "ggplot2"), lambda: pio.templates.default),
    "a template of plotly": (_template, lambda: "mine" in pio.templates),
    "the renderer of plotly": (lambda: setattr(pio.renderers, "default", "json"), lambda: pio.renderers.default),
    "the defaults of plotly express": (_default_width, lambda: px.defaults.width),
    "the level of a logger": (lambda: LOGGER.setLevel(33), lambda: LOGGER.level),
    "a handler of a logger": (_handler, lambda: list(LOGGER.handlers)),
    "a handler of all loggers": (
        lambda: logging.basicConfig(handlers=[logging.NullHandler()], force=False)
        or logging.root.addHandler(logging.NullHandler()),
        lambda: list(logging.root.handlers),
    ),
    "logging itself": (lambda: logging.disable(40), lambda: logging.root.manager.disable),
    "a constructor of yaml": (_constructor, lambda: "!mine" in yaml.SafeLoader.yaml_constructors),
    "the recursion limit": (lambda: sys.setrecursionlimit(1234), sys.getrecursionlimit),
    "the collector": (gc.disable, gc.isenabled),
    "a filter of a logger": (lambda: LOGGER.addFilter(bool), lambda: list(LOGGER.filters)),
    "where a logger's records go": (lambda: setattr(LOGGER, "propagate", False), lambda: LOGGER.propagate),
    "the handler of a signal": (
        lambda: signal.signal(signal.SIGUSR2, signal.SIG_IGN),
        lambda: signal.getsignal(signal.SIGUSR2),
    ),
    "a type of files": (
        lambda: mimetypes.add_type("mine/mine", ".mine"),
        lambda: (mimetypes.guess_type("a.mine"), mimetypes.guess_all_extensions("mine/mine")),
    ),
    "how a class is pickled": (
        lambda: copyreg.pickle(Handled, lambda value: (Handled, ())),
        lambda: Handled in copyreg.dispatch_table,
    ),
    "a format of archives": (
        lambda: shutil.register_archive_format("mine", print),
        lambda: ("mine", "") in shutil.get_archive_formats(),
    ),
    "a charset of mail": (
        lambda: email.charset.add_charset("mine", email.charset.QP),
        lambda: "mine" in email.charset.CHARSETS,
    ),
    "the folder of temporary files": (
        lambda: setattr(tempfile, "tempdir", "elsewhere"),
        lambda: tempfile.tempdir,
    ),
    "what is told of an error in a thread": (
        lambda: setattr(threading, "excepthook", print),
        lambda: threading.excepthook,
    ),
    "what is told of an error in a finalizer": (
        lambda: setattr(sys, "unraisablehook", print),
        lambda: sys.unraisablehook,
    ),
    "the bound of Pillow": (
        lambda: setattr(PIL.Image, "MAX_IMAGE_PIXELS", None),
        lambda: PIL.Image.MAX_IMAGE_PIXELS,
    ),
    "the config of networkx": (
        lambda: setattr(nx.config, "fallback_to_nx", True),
        lambda: nx.config.fallback_to_nx,
    ),
    "a backend of networkx": (
        lambda: setattr(nx.config.backend_priority, "algos", ["networkx"]),
        lambda: list(nx.config.backend_priority.algos),
    ),
    "a key among others": (_rename_a_key, lambda: list(shutil._ARCHIVE_FORMATS)),
    "the order of a list": (_reverse_filters, lambda: list(warnings.filters)),
    "the timeout of sockets": (lambda: socket.setdefaulttimeout(3), socket.getdefaulttimeout),
}  # fmt: skip
"""What a function of a registered module changes, and what tells."""


def wrapping(change, look):
    """Return a module of the host's with a function that makes a change and returns what is then in force."""
    module = types.ModuleType("wrapping")

    def changed():
        change()
        return look()

    changed.__module__ = "wrapping"
    module.changed, module.look = changed, look
    return module


def exec_with(source, *modules, limits=None, **functions):
    policy = Policy.default()
    for module in modules:
        policy.module(module)
    for name, function in functions.items():
        policy.fn(function, name=name)
    return Sandbox(policy, limits=limits or Limits(seconds=30)).exec(source)


@pytest.fixture(autouse=True)
def _as_before():
    """Have a test that fails change nothing for the next."""
    mpl.use("agg", force=True)
    with mpl.rc_context(), pd.option_context("display.max_rows", 60), warnings.catch_warnings():
        yield
    gc.enable()
    logging.disable(0)


@pytest.mark.parametrize(("change", "look"), OWN.values(), ids=OWN)
def test_what_a_registered_module_changes_is_put_back(change, look):
    before = look()
    result = exec_with("import wrapping\nchanged = wrapping.changed()", wrapping(change, look))
    assert result.error is None
    assert result.namespace["changed"] != before
    assert look() == before


@pytest.mark.parametrize(("change", "look"), OWN.values(), ids=OWN)
def test_a_later_run_of_a_session_puts_back_what_it_changes(change, look):
    policy = Policy.default()
    policy.module(wrapping(change, look))
    session = Sandbox(policy, limits=Limits(seconds=30)).session()
    for _ in range(2):
        assert session.run("import wrapping").error is None  # changes nothing, and is not looked at closely
    before = look()
    assert session.run("wrapping.changed()").error is None
    assert look() == before
    session.close()


SEABORN = {
    "set_theme": "sns.set_theme(style='darkgrid', font_scale=2)",
    "set_style": "sns.set_style('dark')",
    "set_context": "sns.set_context('poster')",
    "set_palette": "sns.set_palette('husl')",
    "set_color_codes": "sns.set_color_codes('pastel')",
    "set": "sns.set()",
    "reset_orig": "sns.reset_orig()",
    "a context that is entered and not left": "sns.axes_style('dark').__enter__()",
    "a theme, and an error": "sns.set_theme()\n1 / 0",
    "a theme, and a limit": "sns.set_theme()\nwhile True: pass",
    "a theme, and no memory": "sns.set_theme()\nraise MemoryError",
    "a theme, and an exit": "sns.set_theme()\nraise SystemExit",
}


@pytest.mark.parametrize("source", SEABORN.values(), ids=SEABORN)
def test_no_theme_of_seaborn_outlives_the_run(source):
    before = dict(mpl.rcParams), _colors()
    exec_with(SNS + source, sns, limits=Limits(seconds=0.3))
    assert (dict(mpl.rcParams), _colors()) == before


def test_a_theme_holds_for_the_rest_of_the_run():
    result = exec_with(SNS + "sns.set_theme(rc={'lines.linewidth': 7})\nx = f()", sns, f=rc)
    assert result.namespace["x"] == 7


def test_each_run_of_a_session_begins_with_what_the_session_has_set():
    policy = Policy.default()
    policy.module(sns)
    policy.fn(rc, name="f")
    session = Sandbox(policy).session()
    before = rc()
    session.run(SNS + "sns.set_theme(rc={'lines.linewidth': 7})")
    assert rc() == before
    session.run("x = f()")
    assert session.namespace["x"] == 7
    assert rc() == before
    other = Sandbox(policy).session()
    other.run("x = f()")
    assert other.namespace["x"] == before


def test_what_yaml_is_told_by_guest_code_is_forgotten():
    source = YAML + "yaml.SafeLoader.add_constructor('!mine', lambda loader, node: 1)"
    assert exec_with(source, yaml).error is None
    assert "!mine" not in yaml.SafeLoader.yaml_constructors


def test_what_a_registered_function_changes_stays():
    def host():
        mpl.rcParams["lines.linewidth"] = 5
        LOGGER.setLevel(44)

    try:
        result = exec_with(SNS + "sns.set_theme(style='dark')\nhost()", sns, host=host)
        assert result.error is None
        assert (rc(), LOGGER.level) == (5, 44)
        assert rc("axes.facecolor") == "white"
    finally:
        LOGGER.setLevel(logging.NOTSET)


def test_what_a_registered_coroutine_changes_stays():
    async def host():
        await asyncio.sleep(0)
        mpl.rcParams["lines.linewidth"] = 5

    policy = Policy.default()
    policy.module(sns)
    policy.fn(host, name="host")
    session = Sandbox(policy).session()
    result = asyncio.run(session.arun(SNS + "sns.set_theme(style='dark')\nawait host()"))
    assert result.error is None
    assert (rc(), rc("axes.facecolor")) == (5, "white")


def test_where_functions_alone_are_registered_nothing_is_put_back():
    exec_with("host()", host=lambda: mpl.rcParams.update({"lines.linewidth": 5}))
    assert rc() == 5


def _granting(*modules):
    policy = Policy.default()
    for module in modules:
        policy.module(module)
    policy.fn(rc, name="f")
    return policy


def test_only_what_may_change_settings_has_them_looked_at():
    lifted = Policy.default()
    lifted.module(pd, include=("*", "set_option"))
    assert may_change(lifted)
    assert may_change(_granting(sns))
    assert not may_change(_granting())
    assert may_change(_granting(pd))
    assert may_change(_granting(mpl))
    assert not may_change(_granting(np, math))


def test_a_member_that_the_host_gave_back_is_put_back_too():
    policy = Policy.default()
    policy.module(sklearn, include=("*", "set_config"))
    before = sklearn.get_config()
    Sandbox(policy).exec("import sklearn\nsklearn.set_config(transform_output='pandas')")
    assert sklearn.get_config() == before


def test_what_a_class_of_the_host_changes_stays_as_what_a_function_of_its_does():
    class Report:
        def draw(self):
            mpl.rcParams["lines.linewidth"] = 7

    policy = Policy.default()
    policy.cls(Report)
    with mpl.rc_context():
        assert Sandbox(policy).exec("Report().draw()").error is None
        assert mpl.rcParams["lines.linewidth"] == 7


def test_a_seed_of_the_hosts_stays():
    exec_with("host()", sns, host=lambda: random.seed(7))
    assert random.random() == random.Random(7).random()


def test_what_is_drawn_without_a_seed_is_not_drawn_again():
    module = types.ModuleType("wrapping")
    module.draw = lambda: (random.random(), np.random.random())
    first, second = (
        exec_with("import wrapping\nx = wrapping.draw()", module).namespace["x"] for _ in range(2)
    )
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_what_a_module_does_as_it_is_loaded_stays(tmp_path, monkeypatch):
    (tmp_path / "agex_test_loaded.py").write_text(
        "import logging\nlogging.getLogger('agex.tests.process_state').setLevel(35)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = types.ModuleType("wrapping")
    module.load = lambda: __import__("agex_test_loaded").__name__
    try:
        assert exec_with("import wrapping\nwrapping.load()", module).error is None
        assert LOGGER.level == 35
        assert "exec_module" not in vars(sys.modules["agex_test_loaded"].__loader__)
    finally:
        LOGGER.setLevel(logging.NOTSET)
        sys.modules.pop("agex_test_loaded", None)


def test_what_a_module_does_as_it_is_loaded_stays_while_another_run_is_on(tmp_path, monkeypatch):
    (tmp_path / "agex_test_loaded.py").write_text(
        "import logging\nlogging.getLogger('agex.tests.process_state').setLevel(35)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    begun, over = threading.Event(), threading.Event()

    def wait():
        begun.set()
        assert over.wait(20)

    other = calling("wait()", wait=wait)
    other.start()
    assert begun.wait(20)
    run = calling("load()", load=lambda: __import__("agex_test_loaded").__name__)
    try:
        run.start()
        run.join()
        over.set()
        other.join()
        assert "agex_test_loaded" in sys.modules
        assert LOGGER.level == 35
    finally:
        over.set()
        LOGGER.setLevel(logging.NOTSET)
        sys.modules.pop("agex_test_loaded", None)


def test_a_run_within_a_run_puts_back_what_it_found():
    def inner():
        assert exec_with(SNS + "sns.set_theme(rc={'lines.linewidth': 3})", sns).error is None
        return rc()

    before = rc()
    source = SNS + "sns.set_theme(rc={'lines.linewidth': 7})\nx = inner()"
    assert exec_with(source, sns, inner=inner).namespace["x"] == 7
    assert rc() == before


def test_runs_that_overlap_leave_what_the_host_has():
    before = rc()
    is_themed, is_over = threading.Event(), threading.Event()

    def wait():
        is_themed.set()
        assert is_over.wait(20)

    themed = threading.Thread(
        target=exec_with,
        args=(SNS + "sns.set_theme(rc={'lines.linewidth': 7})\nwait()", sns),
        kwargs={"wait": wait},
    )
    themed.start()
    assert is_themed.wait(20)
    exec_with(SNS + "sns.set_theme(rc={'lines.linewidth': 8})", sns)
    assert rc() == before
    is_over.set()
    themed.join(20)
    assert rc() == before


def calling(source, **functions):
    """Return a session that may change settings, and the thread that runs its program."""
    policy = Policy.default()
    policy.module(wrapping(lambda: None, lambda: None))
    for name, function in functions.items():
        policy.fn(function, name=name)
    session = Sandbox(policy, limits=Limits(seconds=30)).session()
    return threading.Thread(target=lambda: session.run(source))


def test_a_function_of_the_host_does_not_keep_what_another_run_changed_meanwhile():
    change, look = OWN["the config of networkx"]
    begun, may_end, ended, over = (threading.Event() for _ in range(4))

    def work():
        begun.set()
        assert may_end.wait(20)

    def change_while_it_works():
        change()
        may_end.set()
        assert ended.wait(20)

    def end():
        ended.set()
        assert over.wait(20)

    other = calling("work()\nend()", work=work, end=end)
    other.start()
    assert begun.wait(20)
    result = exec_with("import wrapping\nchanged = wrapping.changed()", wrapping(change_while_it_works, look))
    over.set()
    other.join()
    try:
        assert result.namespace["changed"] is True
        assert look() is False
    finally:
        nx.config.fallback_to_nx = False


def test_a_run_that_begins_as_another_ends_does_not_keep_its_settings():
    change, look = OWN["the config of networkx"]
    over = threading.Event()
    policy = Policy.default()
    policy.module(wrapping(lambda: None, lambda: None))
    session = Sandbox(policy, limits=Limits(seconds=30)).session()

    def keep_running():
        while not over.is_set():
            assert session.run("x = 1").error is None

    other = threading.Thread(target=keep_running)
    other.start()
    try:
        for _ in range(200):
            result = exec_with("import wrapping\nchanged = wrapping.changed()", wrapping(change, look))
            assert result.error is None
            assert look() is False
    finally:
        over.set()
        other.join()
        nx.config.fallback_to_nx = False


def test_a_cancelled_run_leaves_what_the_host_has():
    async def cancelled():
        policy = Policy.default()
        policy.module(sns)
        session = Sandbox(policy).session()
        source = "import asyncio\n" + SNS + "sns.set_theme(style='dark')\nawait asyncio.sleep(30)"
        task = asyncio.create_task(session.arun(source))
        for _ in range(3):
            await asyncio.sleep(0)
        assert rc("axes.facecolor") != "white"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert rc("axes.facecolor") == "white"


def test_nothing_looks_at_imports_between_runs():
    before = list(sys.meta_path)
    exec_with(SNS + "sns.set_theme()", sns)
    assert sys.meta_path == before
