"""The standard set: the modules that guest code may import without a registration.

One line a module, with the members that are left out or replaced, and why. A module that is not listed is not
importable until the host registers it. A module belongs here if nothing in it reads or writes files, sockets,
processes or the interpreter, and nothing takes the name of an attribute as a string. Single members that do
are named, and dropped or replaced.
"""

from __future__ import annotations

import ast
import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from agex.sandbox.classes import stand_ins as instead
from agex.sandbox.classes import unsafe_protocols
from agex.sandbox.patches import enum, methods, stdlib_caches
from agex.sandbox.policy.module_grant import ModuleGrant
from agex.sandbox.runtime import audit_hook
from agex.sandbox.runtime.context import asking
from agex.sandbox.stdlib import (
    asyncio_tasks,
    dataclasses,
    generic_alias,
    ipaddress,
    plain_values,
    queue,
    texts,
)
from agex.sandbox.stdlib.abc import ABC
from agex.sandbox.stdlib.clock import Draw, clock_library, clock_members
from agex.sandbox.stdlib.contextlib import CONTEXTLIB
from agex.sandbox.stdlib.copy import COPY
from agex.sandbox.stdlib.decorators import writing
from agex.sandbox.stdlib.functools import FUNCTOOLS
from agex.sandbox.stdlib.itertools import ITERTOOLS
from agex.sandbox.stdlib.operator import OPERATOR
from agex.sandbox.stdlib.random import random_members, statistics_members
from agex.sandbox.stdlib.source_modules import WRITTEN, WrittenGrant
from agex.sandbox.stdlib.string_format import SafeFormatter
from agex.sandbox.stdlib.struct import ARRAY, STRUCT
from agex.sandbox.stdlib.sys_streams import STREAMS
from agex.sandbox.stdlib.traceback import TRACEBACK
from agex.sandbox.stdlib.typing import get_type_hints, typing_marks
from agex.sandbox.stdlib.warnings import WARNINGS

__all__ = ["clock_library", "clocked", "grants"]

_WHOLE = """
    __future__ abc array base64 binascii bisect calendar cmath collections colorsys copy
    datetime decimal difflib enum errno fractions graphlib heapq html itertools json keyword math numbers
    pprint random re reprlib secrets statistics struct textwrap time typing unicodedata uuid zlib zoneinfo
""".split()
"""Modules that are granted by their public names, less those in `_WITHOUT`."""

_WITHOUT: dict[str, tuple[str, ...]] = {
    "abc": ("update_abstractmethods",),
    "base64": ("main", "test", "encode", "decode"),  # command line; work on files
    "calendar": (
        "main",
        "setfirstweekday",
        "different_locale",
        "sys",
        "locale",
        "c",  # the module's functions use it
        "LocaleTextCalendar",
        "LocaleHTMLCalendar",  # set the locale of the process
    ),
    "copy": ("dispatch_table",),
    "datetime": ("datetime_CAPI",),  # addresses of memory
    "decimal": ("DefaultContext", "setcontext", "BasicContext", "ExtendedContext"),  # shared with the host
    "enum": ("pickle_by_enum_name", "pickle_by_global_name", "global_enum", "global_enum_repr"),
    "fractions": ("sys",),
    "json": ("load", "dump", "detect_encoding"),
    "random": ("SystemRandom", "main"),  # the command line of the process
    "re": ("purge", "template"),
    "time": ("clock_settime", "clock_settime_ns", "tzset", "pthread_getcpuclockid"),
    "typing": (
        "ForwardRef",
        "no_type_check_decorator",
        "evaluate_forward_ref",  # evaluate text as code
        "clear_overloads",  # they belong to the host as well
        "io",
        "re",  # until Python 3.12: namespaces shared with the host
    ),
    "uuid": ("getnode", "uuid1", "main"),  # the machine's hardware address
    "zoneinfo": ("reset_tzpath", "TZPATH"),
    "reprlib": ("aRepr",),  # its limits hold for the host as well
}

_ONLY: dict[str, tuple[str, ...]] = {
    "contextlib": (
        "AbstractContextManager", "AbstractAsyncContextManager", "AsyncExitStack", "ContextDecorator",
        "ExitStack",
        "asynccontextmanager", "closing", "contextmanager", "nullcontext", "suppress", "aclosing",
    ),
    "csv": ("reader", "writer", "DictReader", "DictWriter", "QUOTE_ALL", "QUOTE_MINIMAL", "QUOTE_NONE",
            "QUOTE_NONNUMERIC", "Error", "Sniffer", "Dialect", "excel", "excel_tab", "unix_dialect"),
    "dataclasses": ("dataclass", "field", "fields", "Field", "FrozenInstanceError", "InitVar",
    "KW_ONLY", "MISSING",
                    "asdict", "astuple", "is_dataclass", "make_dataclass", "replace"),
    "functools": ("cache", "cached_property", "cmp_to_key", "lru_cache", "partial", "partialmethod", "reduce",
                  "total_ordering", "WRAPPER_ASSIGNMENTS", "WRAPPER_UPDATES"),
    "codecs": ("BOM_UTF8", "decode", "encode"),
    "http": ("HTTPMethod", "HTTPStatus"),
    "quopri": ("decodestring", "encodestring"),
    "hashlib": ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "blake2s",
    "sha3_224", "sha3_256",
                "sha3_384", "sha3_512", "shake_128", "shake_256", "new", "algorithms_available",
                "algorithms_guaranteed", "pbkdf2_hmac"),
    "io": ("StringIO", "BytesIO", "UnsupportedOperation", "DEFAULT_BUFFER_SIZE", "SEEK_SET", "SEEK_CUR",
           "SEEK_END"),
    "operator": tuple(
        "abs add and_ concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat "
        "ifloordiv ilshift "
        "imatmul imod imul index indexOf inv invert ior ipow irshift is_ is_not isub itemgetter "
        "itruediv ixor le "
        "length_hint lshift lt matmul mod mul ne neg not_ or_ pos pow rshift setitem sub truediv truth "
        "xor".split()
    ),
    "string": ("ascii_letters", "ascii_lowercase", "ascii_uppercase", "capwords", "digits",
    "hexdigits", "octdigits",
               "printable", "punctuation", "whitespace", "Template"),
    "types": ("SimpleNamespace", "MappingProxyType", "NoneType", "GenericAlias", "EllipsisType",
              "NotImplementedType", "UnionType", "DynamicClassAttribute", "coroutine", "GeneratorType",
              "CoroutineType", "AsyncGeneratorType",
              # type() leads to these anyway
              "FunctionType", "LambdaType", "MethodType", "BuiltinFunctionType", "BuiltinMethodType",
              "ModuleType", "TracebackType"),
    "queue": ("Empty", "Full", "LifoQueue", "PriorityQueue", "Queue", "ShutDown", "SimpleQueue"),
    "asyncio": ("sleep", "gather", "wait_for", "wait", "as_completed", "create_task", "ensure_future",
                "Queue", "LifoQueue", "PriorityQueue", "QueueShutDown", "QueueEmpty", "QueueFull",
                "Lock", "Event", "Semaphore", "BoundedSemaphore", "Condition", "TaskGroup", "timeout",
                "TimeoutError", "CancelledError", "InvalidStateError",
                "run", "to_thread", "Runner", "get_event_loop", "new_event_loop", "set_event_loop",
                 "FIRST_COMPLETED", "ALL_COMPLETED", "FIRST_EXCEPTION", "iscoroutinefunction"),
    "ast": ("literal_eval", *texts.AST),
    "tokenize": texts.TOKENIZE,
    **texts.EMAIL,
    "ipaddress": ipaddress.MEMBERS,
    "fnmatch": plain_values.FNMATCH,
    "email.utils": plain_values.MAIL,
    "hmac": plain_values.HMAC,
    **plain_values.PACKING,
    "shlex": plain_values.SHLEX,
    "tomllib": plain_values.TOML,
    "urllib.parse": plain_values.URLS,
    "traceback": tuple(TRACEBACK),
    "warnings": tuple(WARNINGS),
    "sys": ("maxsize", "float_info", "int_info", "version_info", "version", "byteorder", "maxunicode",
    "getsizeof",
            "getrecursionlimit", "hash_info", "implementation", "platform",
            "argv", "exit", "modules", "path"),
    "collections.abc": (),
}  # fmt: skip
"""Modules of which only the named members are granted."""


@functools.cache
def grants() -> Mapping[str, ModuleGrant]:
    """Return the grants of the standard set. Nothing is imported before guest code asks for it."""
    replaced = _replacements()
    for module, stand_ins in replaced.items():
        _name_after(module, stand_ins)
    found = {"collections.abc": ModuleGrant("collections.abc", recursive=False)}
    found |= {name: WrittenGrant(name) for name in WRITTEN}
    replaced["collections"] = {"abc": found["collections.abc"].copy()}
    for name in _WHOLE:
        exclude = ("_*", "*._*", *_WITHOUT.get(name, ()))
        found[name] = ModuleGrant(
            name,
            exclude=exclude,
            recursive=False,
            replace=replaced.get(name),
            per_session=_PER_SESSION.get(name),
        )
    for name, members in _ONLY.items():
        if members:
            replace = replaced.get(name, {})
            found[name] = ModuleGrant(
                name,
                include=(*members, *replace),
                exclude=(),
                recursive=False,
                replace=replace,
                per_session=_PER_SESSION.get(name),
                gives_way=name in plain_values.PACKING,
            )
    return found


def clocked(draw: Draw) -> dict[str, ModuleGrant]:
    """Return the grants of the modules that look at clocks or at chance, which ask *draw*."""
    replaced = _replacements()
    return {
        name: ModuleGrant(
            name,
            exclude=("_*", "*._*", *_WITHOUT.get(name, ())),
            recursive=False,
            replace={**replaced.get(name, {}), **members},
            per_session=_PER_SESSION.get(name),
        )
        for name, members in clock_members(draw).items()
    }


def _replacements() -> dict[str, dict[str, Any]]:
    return {
        "abc": ABC,
        "array": ARRAY,
        "ast": {"literal_eval": literal_eval, **texts.ast_members()},
        "tokenize": texts.tokenize_members(),
        "time": {"sleep": queue.sleep},
        "asyncio": asyncio_tasks.ASYNCIO,
        "contextlib": CONTEXTLIB,
        "copy": COPY,
        "dataclasses": dataclasses.DATACLASSES,
        "enum": enum.ENUM,
        "functools": FUNCTOOLS,
        "itertools": ITERTOOLS,
        "operator": OPERATOR,
        "struct": STRUCT,
        "string": {"Formatter": SafeFormatter},
        "types": {
            "GenericAlias": generic_alias.GenericAlias,
            "SimpleNamespace": unsafe_protocols.SimpleNamespace,
            "coroutine": writing(types.coroutine),
        },
        "typing": {
            "get_type_hints": get_type_hints,
            **typing_marks(),
            **generic_alias.TYPING,
        },
        "sys": {**STREAMS, "exit": _exit},
        "traceback": TRACEBACK,
        "warnings": WARNINGS,
        "zoneinfo": {"available_timezones": _available_timezones},
    }


def _available_timezones() -> set[str]:
    """Return the time zones that the installation has: a workspace has no such files."""
    import zoneinfo

    return audit_hook.call_as_host(zoneinfo.available_timezones)


def _name_after(module: str, members: Mapping[str, Any]) -> None:
    """Name the stand-ins of members of *module* like the real ones."""
    for name, value in members.items():
        if isinstance(value, (types.FunctionType, type)) and value.__module__.startswith("agex."):
            value.__name__ = value.__qualname__ = name
            value.__module__ = module
            if isinstance(value, type):
                instead.note_ours(value)


def _own_system() -> dict[str, Any]:
    """Return members of ``sys`` that can be written to, anew for each session.

    Changes of ``path`` have no effect: all files of the workspace can be imported.
    """
    implementation = unsafe_protocols.SimpleNamespace(**vars(sys.implementation))
    guards: Any = asking()
    modules = types.MappingProxyType({} if guards is None else guards.importer.handed_out)
    return {"argv": [""], "path": [""], "modules": modules, "implementation": implementation}


def _exit(status: Any = None, /) -> NoReturn:
    """End the program, as ``sys.exit`` does."""
    raise SystemExit(*(() if status is None else (status,)))


_PER_SESSION: dict[str, Callable[[], Mapping[str, Any]]] = {
    "asyncio": asyncio_tasks.late_members,
    "ipaddress": ipaddress.late_members,
    "queue": queue.members,
    "random": random_members,
    "statistics": statistics_members,
    "sys": _own_system,
    "zoneinfo": stdlib_caches.zone_members,
    **methods.LATE,
    **plain_values.LATE,
}
"""Makes members for each session, or when their module is first imported."""


def literal_eval(node_or_string: Any) -> Any:
    """Do what ``ast.literal_eval`` does with text; guest code has no nodes."""
    if not isinstance(node_or_string, str):
        raise ValueError(f"malformed node or string: {node_or_string!r}")  # noqa: TRY004 - as the real one does
    return ast.literal_eval(str.__str__(node_or_string))
