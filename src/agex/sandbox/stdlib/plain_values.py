"""Small modules of the standard library, whose functions take plain values only.

``urllib.parse``, ``fnmatch`` and ``tomllib`` cache their arguments for the whole process. ``hmac``, ``shlex``
and ``email.utils`` accept an object with methods in place of a text. ``csv.reader`` asks an iterator that may
re-enter it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import io
import os
import types
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from agex.sandbox.patches.methods import hold
from agex.sandbox.patches.stdlib_caches import exact
from agex.sandbox.runtime.context import CURRENT, asking
from agex.sandbox.stdlib.itertools import alone

__all__ = ["FNMATCH", "HMAC", "LATE", "MAIL", "PACKING", "SHLEX", "TOML", "URLS", "text_for"]

URLS = (
    "urlparse", "urlsplit", "urljoin", "urldefrag", "urlunparse", "urlunsplit", "urlencode", "parse_qs",
    "parse_qsl", "quote", "quote_from_bytes", "quote_plus", "unquote", "unquote_plus", "unquote_to_bytes",
    "DefragResult", "DefragResultBytes", "ParseResult", "ParseResultBytes", "SplitResult", "SplitResultBytes",
)  # fmt: skip
"""The members of ``urllib.parse``."""
_SPLITTING = frozenset({"urldefrag", "urljoin", "urlparse", "urlsplit"})
FNMATCH = ("filter", "fnmatch", "fnmatchcase", "translate")
"""The members of ``fnmatch``."""
TOML = ("TOMLDecodeError", "loads")
"""The members of ``tomllib``."""
HMAC = ("compare_digest", "digest", "new")
"""The members of ``hmac``."""
SHLEX = ("join", "quote", "split")
"""The members of ``shlex``."""
MAIL = ("formataddr", "format_datetime", "formatdate", "parseaddr", "parsedate", "parsedate_to_datetime",
        "parsedate_tz")  # fmt: skip
"""The members of ``email.utils``, without those that name the machine or count for the process."""
PACKING = {
    "bz2": ("compress", "decompress"),
    "gzip": ("BadGzipFile", "compress", "decompress"),
    "lzma": ("LZMAError", "compress", "decompress"),
}
"""The members of modules that compress bytes; their other members work on files."""

# Lists and dicts have no hash, so no cache holds them.
_KINDS = frozenset({str, bytes, bytearray, memoryview, int, bool, float, list, dict, types.NoneType})


def _plain(real: Callable[..., Any], value: Any) -> Any:
    found = exact(value)
    if type(found) not in _KINDS:
        raise TypeError(f"{real.__name__}() takes text or bytes, not {type(found).__name__}")
    return found


def _of_plain(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        settled = {name: _plain(real, value) for name, value in kwargs.items()}
        return real(*(_plain(real, value) for value in args), **settled)

    return call


@functools.cache
def _urls() -> dict[str, Any]:
    from urllib import parse

    # The functions that join parts, and the classes of parts, cache nothing.
    held = {
        name: _of_plain(getattr(parse, name))
        for name in URLS
        if name.startswith(("parse_", "quote", "unquote")) or name in _SPLITTING
    }

    @functools.wraps(parse.urlencode)
    def urlencode(  # noqa: PLR0917 - as in the standard library
        query: Any,
        doseq: Any = False,
        safe: Any = "",
        encoding: Any = None,
        errors: Any = None,
        quote_via: Any = held["quote_plus"],
    ) -> str:
        guards = asking()
        if type(query) is not dict and guards is not None:
            items = guards.getattr(query, "items", None)
            query = list(query if items is None else items())
        return parse.urlencode(query, bool(doseq), safe, encoding, errors, quote_via)

    return {**held, "urlencode": urlencode}


@functools.cache
def _hmac() -> dict[str, Any]:
    import hmac

    hold(hmac.HMAC, "update", "copy", "digest", "hexdigest")
    functions = [getattr(hashlib, name, None) for name in hashlib.algorithms_guaranteed]

    def settled(real: Callable[..., Any], digestmod: Any) -> Any:
        if any(digestmod is each for each in functions):
            return digestmod
        if type(found := exact(digestmod)) is str:
            return found
        raise TypeError(f"{real.__name__}() takes the name of a digest, or a function of hashlib")

    @functools.wraps(hmac.new)
    def new(key: Any, msg: Any = None, digestmod: Any = "") -> Any:
        return hmac.new(_plain(new, key), _plain(new, msg), settled(new, digestmod))

    @functools.wraps(hmac.digest)
    def digest(key: Any, msg: Any, digest: Any) -> bytes:
        return hmac.digest(_plain(hmac.digest, key), _plain(hmac.digest, msg), settled(hmac.digest, digest))

    return {"compare_digest": hmac.compare_digest, "digest": digest, "new": new}


@functools.cache
def _shlex() -> dict[str, Any]:
    import shlex

    split = _of_plain(shlex.split)

    @functools.wraps(shlex.split)
    def of_text(s: Any, comments: Any = False, posix: Any = True) -> Any:
        if not isinstance(s, str):  # it would read a stream, by default the host's stdin
            raise ValueError("s argument must not be None" if s is None else "s argument must be a str")  # noqa: TRY004 - as the real one does
        return split(s, comments, posix)

    return {"split": of_text, "quote": _of_plain(shlex.quote)}


@functools.cache
def _fnmatch() -> dict[str, Any]:
    import fnmatch

    def matching(real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        def matches(name: Any, pat: Any) -> Any:
            return real(exact(os.fspath(name)), exact(os.fspath(pat)))

        return matches

    @functools.wraps(fnmatch.filter)
    def filter_(names: Iterable[Any], pat: Any) -> list[Any]:
        given, pattern = list(names), exact(os.fspath(pat))
        return [name for name in given if fnmatch.filter([exact(name)], pattern)]

    return {
        "filter": filter_,
        "fnmatch": matching(fnmatch.fnmatch),
        "fnmatchcase": matching(fnmatch.fnmatchcase),
        "translate": _of_plain(fnmatch.translate),
    }


@functools.cache
def _toml() -> dict[str, Any]:
    import tomllib

    @functools.wraps(tomllib.loads)
    def loads(s: Any, /, *, parse_float: Any = float) -> Any:
        return tomllib.loads(exact(s), parse_float=parse_float)

    return {"loads": loads}


@functools.cache
def _mail() -> dict[str, Any]:
    from email import utils

    @functools.wraps(utils.formataddr)
    def formataddr(pair: Any, charset: Any = "utf-8") -> str:
        name, address = pair
        plain = _plain(formataddr, name), text_for("formataddr", address)
        return utils.formataddr(plain, text_for("formataddr", charset))

    @functools.wraps(utils.format_datetime)
    def format_datetime(dt: Any, usegmt: Any = False) -> str:
        if not issubclass(type(dt), datetime):
            raise TypeError(f"format_datetime() takes a datetime, not {type(dt).__name__}")
        return utils.format_datetime(dt, bool(usegmt))

    names = (name for name in MAIL if name.startswith("parse") or name == "formatdate")
    held = {name: _of_plain(getattr(utils, name)) for name in names}
    return {**held, "formataddr": formataddr, "format_datetime": format_datetime}


def text_for(function: str, value: Any, *kinds: type) -> Any:
    """Return a text, or another of *kinds*, as an exact object of its builtin class.

    Raises:
        TypeError: the value is of another class; a library would read attributes of it.
    """
    found = exact(value)
    if type(found) not in (kinds or (str,)):
        raise TypeError(f"{function}() takes text, not {type(found).__name__}")
    return found


@functools.cache
def _csv() -> dict[str, Any]:
    import csv

    real: Any = csv.reader

    @functools.wraps(real)
    def reader(*args: Any, **kwargs: Any) -> Any:
        if args and CURRENT.get() is not None and type(args[0]) not in _OF_LINES:
            return real(alone(args[0]), *args[1:], **kwargs)
        return real(*args, **kwargs)

    csv.reader = reader  # DictReader calls it by this name
    return {"reader": reader}


_OF_LINES = frozenset({io.StringIO, io.TextIOWrapper, types.GeneratorType})


def _packing(module: str) -> Callable[[], dict[str, Any]]:
    @functools.cache
    def members() -> dict[str, Any]:
        real = importlib.import_module(module)
        first = {"gzip": "compresslevel", "bz2": "compresslevel", "lzma": "preset"}[module]

        @functools.wraps(real.compress)
        def compress(data: Any, *level: Any, **options: Any) -> bytes:
            if options.keys() - {first, "mtime"} or len(level) > 1 or (level and module == "lzma"):
                raise TypeError(f"{module}.compress() takes data and {first}= here")
            given: bytes = _of_plain(real.compress)(data, *level, **options)
            return given

        @functools.wraps(real.decompress)
        def decompress(data: Any) -> bytes:
            made: bytes = _of_plain(real.decompress)(data)
            return made

        return {"compress": compress, "decompress": decompress}

    return members


LATE: dict[str, Callable[[], dict[str, Any]]] = {
    **{name: _packing(name) for name in PACKING},
    "csv": _csv,
    "email.utils": _mail,
    "fnmatch": _fnmatch,
    "hmac": _hmac,
    "shlex": _shlex,
    "tomllib": _toml,
    "urllib.parse": _urls,
}
"""Makes the stand-ins of a module when guest code first imports it."""
