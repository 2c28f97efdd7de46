"""Policy of dateutil: arithmetic with months and weekdays, and parsing of dates."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from agex.errors import SandboxTypeError
from agex.sandbox.patches.stdlib_caches import exact
from agex.sandbox.policy.library import Library, only
from agex.sandbox.stdlib.plain_values import text_for

__all__ = ["LIBRARIES"]

_MODULES = {
    "": only(),
    "easter": only("EASTER_JULIAN EASTER_ORTHODOX EASTER_WESTERN easter"),
    "parser": only("ParserError UnknownTimezoneWarning isoparse parse"),
    "relativedelta": only("FR MO SA SU TH TU WE relativedelta"),
}
"""Not listed: tz (caches zones for the process by its arguments, and reads files; zoneinfo has them),
zoneinfo (a file of its own), rrule."""

_OPTIONS = frozenset("dayfirst default fuzzy fuzzy_with_tokens ignoretz tzinfos yearfirst".split())


def _parse(real: Callable[..., Any], timestr: Any, parserinfo: Any = None, **options: Any) -> Any:
    if parserinfo is not None or not options.keys() <= _OPTIONS:
        raise SandboxTypeError(f"parse() takes text here, and {', '.join(sorted(_OPTIONS))}")
    default = options.get("default")
    if default is not None and not issubclass(type(default), dt.datetime):
        raise TypeError(f"default must be a datetime, not {type(default).__name__}")
    if options.get("tzinfos") is not None:
        options["tzinfos"] = _zones(options["tzinfos"])
    return real(text_for("parse", timestr, str, bytes), **options)


def _zones(given: Any) -> dict[str, Any]:
    """Return zones by their names; dateutil caches zones given as numbers or texts for the process."""
    if not issubclass(type(given), dict):
        raise SandboxTypeError("tzinfos is a dict here, of names and of zones or seconds")
    zones: dict[str, Any] = {}
    for name, zone in dict.items(given):
        found = exact(zone)
        if type(found) not in {int, str} and not issubclass(type(found), (dt.tzinfo, type(None))):
            raise TypeError(f"a time zone is a tzinfo or seconds, not {type(found).__name__}")
        zones[text_for("parse", name)] = found
    return zones


def _isoparse(real: Callable[..., Any], dt_str: Any) -> Any:
    return real(text_for("isoparse", dt_str, str, bytes))


LIBRARIES = {
    "dateutil": Library(
        name="dateutil",
        modules=_MODULES,
        functions={"parser": {"isoparse": _isoparse, "parse": _parse}},
        # Their constructors read a table of the process. Results of parse() lead there.
        sealed=tuple(
            f"dateutil.tz.{home}{name}"
            for home in ("", "tz.")
            for name in ("tzfile", "tzlocal", "tzoffset", "tzrange", "tzstr", "tzutc")
        ),
    )
}
