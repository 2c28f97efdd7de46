"""Settings of libraries, and of Python itself, that hold for the whole process.

A setting is read and written where its library keeps it. Most are tables (a dict, a list, a set) or
attributes of a module, named by their path; some do not exist in other versions. Only modules that are loaded
are used, and none is imported.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

from agex.sandbox.patches.replacement import replace
from agex.sandbox.runtime import audit_hook

__all__ = ["POLARS", "Setting", "loaded", "watch_seeds"]


def _nothing() -> None:
    """Do nothing."""


class Setting:
    """One or more settings of a module, by their names.

    Args:
        read: returns the values by name; raises AttributeError if there are none.
        write: sets one, or removes it for `NONE`.
        holds_tables: whether the contents of dicts, lists and sets are settings as well.
        deep: whether this holds for nested ones.
        after: called when one was written.
        row: returns the values, and what else tells that they are the same, in less time than `read`.
        is_made: whether a value is made when it is read, so that an equal one is the same.
        place: in place of `row`, module and path of the only value, or of the function that returns it.
    """

    NONE: Final[Any] = object()

    def __init__(
        self,
        read: Callable[[], dict[Any, Any]],
        write: Callable[[Any, Any], object],
        *,
        holds_tables: bool = False,
        deep: bool = False,
        after: Callable[[], None] = _nothing,
        row: Callable[[], Iterable[Any]] | None = None,
        is_made: bool = False,
        place: tuple[str, str] | None = None,
    ) -> None:
        self.read, self.write, self.after = read, write, after
        self.holds_tables, self.deep, self.is_made = holds_tables, deep, is_made
        self.row = row or (lambda: read().values())
        self.place = (place[0], operator.attrgetter(place[1])) if place is not None else None


def loaded() -> list[Setting]:
    """Return the settings of the loaded modules."""
    return [each for name, settings in _SETTINGS.items() if name in sys.modules for each in settings]


def _at(module: str, path: str) -> Any:
    """Return what stands at a path; raises AttributeError where it, or the module, is gone."""
    found = sys.modules.get(module)
    return _getter(path)(found) if path else found


_getter = functools.cache(operator.attrgetter)


def _accessors(module: str, path: str) -> list[Setting]:
    """Return the registered accessors of a class of pandas or polars: their names, and the accessors."""

    def read() -> dict[Any, Any]:
        class_ = _at(module, path)
        return {name: vars(class_).get(name) for name in tuple(class_._accessors)}

    def write(name: str, value: Any) -> None:
        if value is Setting.NONE:
            delattr(_at(module, path), name)
        else:
            setattr(_at(module, path), name, value)

    def row() -> Iterable[Any]:
        class_ = _at(module, path)
        return map(vars(class_).get, class_._accessors)

    # The members first: the names tell which are new.
    return [Setting(read, write, row=row), _named(module, f"{path}._accessors")]


def _named(module: str, path: str, *, deep: bool = False, after: Callable[[], None] = _nothing) -> Setting:
    """Return the setting at a path: the object itself, and its content if it is a table."""
    owner, _, name = path.rpartition(".")

    def read() -> dict[Any, Any]:
        return {name: _at(module, path)}

    def write(name: Any, value: Any) -> None:
        setattr(_at(module, owner), name, value)

    return Setting(read, write, holds_tables=True, deep=deep, after=after, place=(module, path))


def _all_named(module: str, *paths: str) -> list[Setting]:
    return [_named(module, path) for path in paths]


def _members(module: str, path: str) -> Setting:
    """Return the public tables of a class; a subclass gets its own when it adds an entry."""

    def read() -> dict[Any, Any]:
        return {
            n: v
            for n, v in dict(vars(_at(module, path))).items()
            if type(v) is dict and not n.startswith("_")
        }

    def write(name: str, value: Any) -> None:
        if value is Setting.NONE:
            delattr(_at(module, path), name)
        else:
            setattr(_at(module, path), name, value)

    def row() -> Iterable[Any]:
        values: Iterable[Any] = vars(_at(module, path)).values()
        return values

    return Setting(read, write, holds_tables=True, deep=True, row=row)


def _called(module: str, get: str, put: str) -> Setting:
    """Return the setting that one function reads and another writes."""
    return Setting(lambda: {put: _at(module, get)()}, lambda _, value: _at(module, put)(value), is_made=True)


def _attributes(module: str, path: str, *names: str) -> Setting:
    """Return attributes of the object at a path, or that the function at a path returns."""

    def holder() -> Any:
        found = _at(module, path)
        return found() if callable(found) else found

    return Setting(
        lambda: {name: getattr(holder(), name) for name in names},
        lambda name, value: setattr(holder(), name, value),
        holds_tables=True,
    )


def _slots(module: str, path: str) -> Setting:
    """Return the attributes of an object that has slots."""

    def read() -> dict[Any, Any]:
        holder = _at(module, path)
        return {name: getattr(holder, name, None) for name in type(holder).__slots__}

    return Setting(read, lambda name, value: setattr(_at(module, path), name, value), holds_tables=True)


# -- Python


def _locale() -> Setting:
    import locale

    def read() -> dict[Any, Any]:
        return {"": locale.setlocale(locale.LC_ALL)}

    return Setting(read, lambda _, value: locale.setlocale(locale.LC_ALL, value), is_made=True)


_OF_DECIMALS = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def _decimals() -> Setting:
    """Return the decimal context of which those of new threads are made."""
    numbers = operator.attrgetter(*_OF_DECIMALS)

    def read() -> dict[Any, Any]:
        context = _at("decimal", "DefaultContext")
        return {**{name: getattr(context, name) for name in _OF_DECIMALS}, **context.traps}

    def write(name: Any, value: Any) -> None:
        context = _at("decimal", "DefaultContext")
        if name in _OF_DECIMALS:
            setattr(context, name, value)
        else:
            context.traps[name] = value

    def row() -> Iterable[Any]:
        context = _at("decimal", "DefaultContext")
        return itertools.chain(numbers(context), context.traps.values())

    return Setting(read, write, row=row, is_made=True)


def _loggers() -> list[Setting]:
    """Return the levels, handlers and filters of loggers. A new logger stays as it is."""
    names = ("level", "handlers", "filters", "propagate", "disabled")
    get = operator.attrgetter(*names)

    def known() -> list[Any]:
        root = _at("logging", "root")
        made = _at("logging", "Logger")
        return [root, *(each for each in list(root.manager.loggerDict.values()) if isinstance(each, made))]

    def read() -> dict[Any, Any]:
        return {(each, name): value for each in known() for name, value in zip(names, get(each), strict=True)}

    def write(which: tuple[Any, str], value: Any) -> None:
        logger, name = which
        if value is Setting.NONE:
            return
        if name == "level":
            logger.setLevel(value)  # it also clears the caches of loggers
        else:
            setattr(logger, name, value)

    def row() -> Iterable[Any]:
        loggers = known()
        return itertools.chain(loggers, *map(get, loggers))

    return [
        Setting(read, write, holds_tables=True, row=row),
        Setting(lambda: {"": _at("logging", "root.manager.disable")}, _disable),
    ]


def _disable(_: Any, level: Any) -> None:
    _at("logging", "disable")(level)


def _mime_types() -> list[Setting]:
    """Return the tables of MIME types: the module's, and those that it made of them at its first use."""
    names = ("types_map", "common_types", "encodings_map", "suffix_map", "knownfiles", "inited", "_db")

    def made() -> dict[Any, Any]:
        made = _at("mimetypes", "_db")
        if made is None:
            return {}
        tables = *made.types_map, *made.types_map_inv, made.encodings_map, made.suffix_map
        return dict(enumerate(tables))

    return [
        *_all_named("mimetypes", *names),
        Setting(made, lambda _, table: None, holds_tables=True, deep=True),
    ]


def _signals() -> Setting:
    """Return the handlers of signals. Only code in the main thread can have changed them."""

    def read() -> dict[Any, Any]:
        get = _at("_signal", "getsignal")
        return {number: get(number) for number in range(1, _at("_signal", "NSIG"))}

    def write(number: Any, handler: Any) -> None:
        # None is one that C code installed.
        if handler is not None and threading.current_thread() is threading.main_thread():
            _at("_signal", "signal")(number, handler)

    def row() -> Iterable[Any]:
        return map(_at("_signal", "getsignal"), range(1, _at("_signal", "NSIG")))

    return Setting(read, write, row=row)


def _forget_filters() -> None:
    forget = getattr(sys.modules["warnings"], "_filters_mutated_lock_held", None)
    if forget is None:
        sys.modules["warnings"]._filters_mutated()
        return
    with sys.modules["warnings"]._lock:
        forget()


# -- libraries


def _forget_colors() -> None:
    _at("matplotlib.colors", "_colors_full_map.cache").clear()


def _tell_of_options() -> None:
    """Call the callbacks of pandas for options that were put back."""
    pandas: Any = sys.modules["pandas._config.config"]
    for name, option in list(pandas._registered_options.items()):
        if option.cb is not None:
            option.cb(name)


def _polars() -> Setting:
    """Return the settings of polars: in its compiled code, and as environment variables of its own."""

    def read() -> dict[Any, Any]:
        environment = _at("polars.config", "os.environ")
        named = {name: environment.get(name) for name in _at("polars.config", "_POLARS_CFG_ENV_VARS")}
        return {**named, **{name: get() for name, get in _at("polars.config", _DIRECT).items()}}

    def write(name: str, value: Any) -> None:
        if name in _at("polars.config", _DIRECT):
            getattr(_at("polars.config", "Config"), name)(value)
        elif value is None:
            audit_hook.call_as_host(_at("polars.config", "os.environ").pop, name, None)
        else:
            audit_hook.call_as_host(_at("polars.config", "os.environ").__setitem__, name, value)
        getattr(_at("polars.config", "Config"), "reload_env_vars", _nothing)()  # since polars 1.30

    return Setting(read, write, is_made=True)


_DIRECT = "_POLARS_CFG_DIRECT_VARS"
POLARS = _polars()


_SETTINGS: dict[str, list[Setting]] = {
    # Python
    "copyreg": _all_named("copyreg", "dispatch_table"),
    "csv": [_called("csv", "field_size_limit", "field_size_limit")],
    "decimal": [_decimals()],
    "email.charset": _all_named("email.charset", "ALIASES", "CHARSETS", "CODEC_MAP"),
    "gc": [
        Setting(
            lambda: {"": _at("gc", "isenabled")()}, lambda _, on: _at("gc", "enable" if on else "disable")()
        )
    ],
    "locale": [_locale()],
    "logging": _loggers(),
    "mimetypes": _mime_types(),
    "shutil": _all_named("shutil", "_ARCHIVE_FORMATS", "_UNPACK_FORMATS"),
    "_signal": [_signals()],
    "socket": [_called("socket", "getdefaulttimeout", "setdefaulttimeout")],
    "sys": [
        _called("sys", "getrecursionlimit", "setrecursionlimit"),
        _called("sys", "getswitchinterval", "setswitchinterval"),
        _called("sys", "get_int_max_str_digits", "set_int_max_str_digits"),
        *_all_named("sys", "displayhook", "excepthook", "unraisablehook"),
    ],
    "tempfile": _all_named("tempfile", "tempdir"),
    "threading": _all_named("threading", "excepthook"),
    "warnings": [
        _named("warnings", "filters", after=_forget_filters),
        *_all_named("warnings", "showwarning", "formatwarning"),
    ],
    # matplotlib
    "matplotlib": [
        _named("matplotlib", "rcParams", deep=True),
        *_all_named("matplotlib", "rcParamsDefault", "colormaps._cmaps", "color_sequences._color_sequences"),
    ],
    "matplotlib.colors": [_named("matplotlib.colors", "_colors_full_map", after=_forget_colors)],
    "matplotlib.dates": _all_named("matplotlib.dates", "_epoch"),
    "matplotlib.font_manager": _all_named("matplotlib.font_manager", "fontManager.ttflist"),
    "matplotlib.legend": _all_named("matplotlib.legend", "Legend._default_handler_map"),
    "matplotlib.projections": _all_named(
        "matplotlib.projections", "projection_registry._all_projection_types"
    ),
    "matplotlib.pyplot": _all_named("matplotlib.pyplot", "_backend_mod"),
    "matplotlib.scale": _all_named("matplotlib.scale", "_scale_mapping"),
    "matplotlib.style": _all_named("matplotlib.style", "library", "available"),
    "matplotlib.units": _all_named("matplotlib.units", "registry"),
    "seaborn._core.plot": _all_named("seaborn._core.plot", "Plot.config._theme", "Plot.config._display"),
    "seaborn.palettes": [_named("seaborn.palettes", "SEABORN_PALETTES", deep=True)],
    # numpy's errors and its printing hold for a context, see agex.sandbox.runtime.process_state
    "numpy": [_called("numpy", "getbufsize", "setbufsize")],
    # pandas
    "pandas._config.config": [
        _named("pandas._config.config", "_global_config", deep=True, after=_tell_of_options)
    ],
    "pandas.core.dtypes.base": _all_named("pandas.core.dtypes.base", "_registry.dtypes", "registry.dtypes"),
    "pandas.core.frame": _accessors("pandas.core.frame", "DataFrame"),
    "pandas.core.indexes.base": _accessors("pandas.core.indexes.base", "Index"),
    "pandas.core.series": _accessors("pandas.core.series", "Series"),
    "pandas.plotting._core": _all_named("pandas.plotting._core", "_backends"),
    # others
    "dask.config": [_named("dask.config", "config", deep=True)],
    "h5py.h5": [
        _attributes("h5py.h5", "get_config", name)
        for name in ("track_order", "default_file_mode", "complex_names", "bool_names")
    ],
    "networkx.utils.configs": [
        _attributes("networkx.utils.configs", "config", name)
        for name in ("backends", "cache_converted_graphs", "fallback_to_nx", "warnings_to_ignore")
    ]
    + [
        _attributes("networkx.utils.configs", "config.backend_priority", name)
        for name in ("algos", "generators", "classes")
    ],
    "PIL.Image": _all_named("PIL.Image", "MAX_IMAGE_PIXELS", "EXTENSION", "MIME", "OPEN", "SAVE", "SAVE_ALL"),
    "plotly.express._core": [_slots("plotly.express._core", "defaults")],
    "plotly.io._renderers": _all_named(
        "plotly.io._renderers",
        *(
            f"renderers.{name}"
            for name in ("_renderers", "_default_name", "_default_renderers", "_to_activate")
        ),
    ),
    "plotly.io._templates": _all_named("plotly.io._templates", "templates._templates", "templates._default"),
    "polars.config": [POLARS],
    "polars.dataframe.frame": _accessors("polars.dataframe.frame", "DataFrame"),
    "polars.expr.expr": _accessors("polars.expr.expr", "Expr"),
    "polars.lazyframe.frame": _accessors("polars.lazyframe.frame", "LazyFrame"),
    "polars.series.series": _accessors("polars.series.series", "Series"),
    "sklearn._config": [
        Setting(
            lambda: {"": _at("sklearn._config", "_get_threadlocal_config")()},
            lambda _, value: setattr(_at("sklearn._config", "_threadlocal"), "global_config", value),
            holds_tables=True,
        ),
        *_all_named("sklearn._config", "_global_config"),
    ],
    "sqlite3": _all_named("sqlite3", "adapters", "converters"),
    "xarray.core.options": _all_named("xarray.core.options", "OPTIONS"),
    "yaml": [
        _members("yaml", name)
        for name in (
            "BaseLoader",
            "FullLoader",
            "Loader",
            "SafeLoader",
            "UnsafeLoader",
            "Dumper",
            "SafeDumper",
        )
    ],
}
"""By the module that must be loaded. A plotly template that is changed in place stays changed."""


# -- generators

NoteSeed = Callable[[str, Callable[[Any], object], Any], None]


def watch_seeds(note: NoteSeed) -> None:
    """Record, once a process, when a generator of the process is seeded, and its state before.

    Without a seed the state is not put back: the host draws from it as well, and would draw the same numbers
    again.
    """
    for module, get, put in _GENERATORS:
        if (home := sys.modules.get(module)) is not None and hasattr(home, "seed"):
            for name in ("seed", put):
                replace(home, name, _seeding(note, module, getattr(home, get), getattr(home, put)))


_GENERATORS = (("random", "getstate", "setstate"), ("numpy.random", "get_state", "set_state"))


def _seeding(note: NoteSeed, module: str, get: Callable[[], Any], put: Callable[[Any], object]) -> Any:
    def make(real: Callable[..., Any]) -> Callable[..., Any]:
        def seed(*args: Any, **kwargs: Any) -> Any:
            note(module, put, get())
            return real(*args, **kwargs)

        return seed

    return make
