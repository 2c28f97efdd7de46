"""The ledger: which names guest code may never, may always, or may sometimes say.

A name is judged once, at compile time, wherever it can be written: attribute loads,
stores and deletes, class patterns, definitions, ``getattr`` with a constant. What the
ledger refuses is refused for every object, so nothing remains to be checked at run time.

Three lists decide:

* :data:`DENIED` - attributes that lead from an object to the interpreter: frames, code,
  globals, the class graph. No dunder among them: those are denied by default.
* :data:`DUNDERS` - the dunders that may be read. Every other dunder is denied.
* :data:`CONTESTED` - names that are harmless on most objects and dangerous on a few; their
  receiver is checked (see :mod:`agex.sandbox.guards.guards`).

The entries are data so that they can be read, diffed against a new Python, and tested one
by one. Sources: the data model chapter of the Python reference; ``Include/cpython`` object
structures; the published escapes of RestrictedPython, smolagents and n8n.
"""

from __future__ import annotations

__all__ = [
    "CONTESTED",
    "DEFINABLE",
    "DENIED",
    "DUNDERS",
    "INHERITED",
    "NAMES",
    "NEVER_DEFINED",
    "PUBLIC_UNDERSCORE",
    "STORABLE",
    "is_denied",
    "is_dunder",
    "is_private",
]

DENIED = frozenset(
    {
        # frames and code of generators, coroutines and asynchronous generators
        "gi_frame", "gi_code", "gi_yieldfrom",
        "cr_frame", "cr_code", "cr_await", "cr_origin",
        "ag_frame", "ag_code", "ag_await",
        # frames
        "f_back", "f_builtins", "f_code", "f_globals", "f_lasti", "f_lineno", "f_locals",
        "f_trace", "f_trace_lines", "f_trace_opcodes", "f_generator",
        # tracebacks
        "tb_frame", "tb_next", "tb_lasti", "tb_lineno",
        # code objects
        "co_code", "co_consts", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_filename",
        "co_positions", "co_lines", "co_linetable", "co_exceptiontable", "co_qualname",
        # Python 2 spellings that some libraries still answer to
        "func_globals", "func_code", "func_closure", "func_defaults", "im_func", "im_self", "im_class",
        # asyncio: a task hands its step and the context of the host to what is a future
        "_asyncio_future_blocking",
        # arrays: where in memory they are
        "buffer_info",
        # policies of email: the registry of classes of headers, which all of the process have
        "header_factory",
        # every enumeration has it: gives the members of any module, and writes into its namespace
        "_convert_",
        # abstract classes: what is registered with a class, and what forgets that, of any class
        "_abc_impl", "_abc_registry_clear", "_abc_caches_clear", "_dump_registry",
        # type parameters and aliases of Python 3.14: functions whose results no guard checks
        "evaluate_bound", "evaluate_constraints", "evaluate_default", "evaluate_value",
        # how EnumType makes a class: they give the real type.__new__, and put members into any enumeration
        "_create_", "_check_for_existing_members_", "_get_mixins_", "_find_data_repr_", "_find_data_type_",
        "_find_new_", "_add_member_", "_new_member_",
    }
)  # fmt: skip
"""Attributes that lead to the interpreter, although they do not look like it."""

OPERATORS = frozenset(
    {
        "__abs__", "__add__", "__aenter__", "__aexit__", "__aiter__", "__and__", "__anext__", "__await__",
        "__bool__", "__bytes__", "__call__", "__ceil__", "__complex__", "__contains__",
        "__copy__", "__deepcopy__", "__delitem__", "__divmod__", "__enter__", "__eq__", "__exit__",
        "__float__", "__floor__", "__floordiv__", "__format__", "__ge__", "__getitem__", "__gt__",
        "__hash__", "__iadd__", "__iand__", "__ifloordiv__", "__ilshift__", "__imatmul__", "__imod__",
        "__imul__", "__index__", "__instancecheck__", "__int__", "__invert__", "__ior__", "__ipow__",
        "__irshift__", "__isub__", "__iter__", "__itruediv__", "__ixor__", "__le__", "__len__",
        "__length_hint__", "__lshift__", "__lt__", "__matmul__", "__missing__", "__mod__", "__mul__",
        "__ne__", "__neg__", "__next__", "__or__", "__pos__", "__pow__", "__radd__", "__rand__",
        "__rdivmod__", "__repr__", "__reversed__", "__rfloordiv__", "__rlshift__", "__rmatmul__",
        "__rmod__", "__rmul__", "__ror__", "__round__", "__rpow__", "__rrshift__", "__rshift__",
        "__rsub__", "__rtruediv__", "__rxor__", "__setitem__", "__sizeof__", "__str__", "__sub__",
        "__subclasscheck__", "__truediv__", "__trunc__", "__xor__",
    }
)  # fmt: skip
"""The dunders that an operator or a builtin calls anyway."""

DUNDERS = OPERATORS | frozenset(
    {
        "__annotations__", "__args__", "__cause__", "__class_getitem__", "__context__", "__doc__",
        "__members__", "__module__", "__name__", "__notes__", "__origin__", "__parameters__",
        "__post_init__", "__qualname__", "__slots__", "__suppress_context__", "__version__",
        "__match_args__", "__dataclass_fields__", "__total__", "__required_keys__", "__optional_keys__",
        "__abstractmethods__", "__isabstractmethod__", "__value__", "__type_params__", "__bound__",
        "__constraints__", "__metadata__", "__supertype__", "__prepare__", "__cached__", "__file__",
        "__all__", "__default__", "__infer_variance__", "__covariant__", "__contravariant__",
        "__orig_bases__", "__orig_class__",
        # checked on the receiver, see CONTESTED
        "__class__", "__dict__", "__init__", "__new__", "__init_subclass__", "__set_name__",
        "__get__", "__set__", "__delete__", "__getattr__", "__getattribute__", "__setattr__", "__delattr__",
        "__bases__", "__base__", "__mro__", "__wrapped__", "__dir__", "__getstate__", "__setstate__",
        "__subclasshook__",
    }
)  # fmt: skip
"""The dunders that may be read as attributes; all others are denied."""

MODULES = frozenset(
    """
    asyncio atexit builtins codecs contextlib copyreg ctypes enum functools gc importlib inspect io
    linecache logging marshal multiprocessing ntpath operator os parser pathlib pickle posix posixpath re
    runpy shutil site socket subprocess sys sysconfig tempfile threading traceback types typing warnings
    weakref
    """.split()
)
"""Names under which objects and modules have modules that lead further; paths call theirs ``parser``."""

CONTESTED = MODULES | frozenset(
    {
        # str: the fields of a format string walk attributes
        "format", "format_map", "vformat", "get_field",
        # AttributeError.obj hands out the object a failed lookup was made on
        "obj",
        # type: a walk of the class graph
        "mro",
        # property: functions that take any object for one of their class
        "fget", "fset", "fdel", "func",
        # abstract classes: makes a class of the host answer isinstance for another
        "register",
        # functools.singledispatch: a view of the functions that the host calls
        "registry",
        # type.__call__ makes a class of any argument
        "__call__",
        # annotations: the real type may be in them
        "__origin__", "__args__", "__bound__", "__constraints__", "__supertype__", "__value__",
        "__default__", "__metadata__",
        # asyncio: frames, threads and what is called outside every limit
        "get_loop", "get_stack", "print_stack", "get_coro", "get_context", "get_event_loop",
        "get_running_loop", "add_done_callback", "remove_done_callback",
        # time zones: a cache of the host, keys that are looked up in it, data that C code believes
        "clear_cache", "no_cache", "from_file",
        # functools.lru_cache: empties the cache of a host function
        "cache_clear",
        # dates: C code looks up the name of a day, for any year
        "ctime",
        # tables of calendar.HTMLCalendar and textwrap.TextWrapper, the same for the whole process
        "cssclasses", "cssclasses_weekday_head", "unicode_whitespace_trans",
        # objects of any class answer to these; only some may
        "__class__", "__dict__", "__init__", "__new__", "__init_subclass__", "__set_name__",
        "__get__", "__set__", "__delete__", "__getattr__", "__getattribute__", "__setattr__", "__delattr__",
        "__bases__", "__base__", "__mro__", "__wrapped__", "__dir__", "__getstate__", "__setstate__",
        "__subclasshook__", "__annotations__", "__members__", "__dataclass_fields__",
        "__orig_bases__", "__orig_class__", "__class_getitem__", "__slots__", "_field_defaults",
    }
)  # fmt: skip
"""Names whose receiver is checked in every program."""

INHERITED = CONTESTED - {"__class__", "__init__"}
"""The contested names that a guest class may inherit from a builtin class: `str.format`."""

STORABLE = frozenset(
    {"__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__cause__", "__context__",
     "__suppress_context__", "__notes__", "__wrapped__", "__isabstractmethod__", "__type_params__"}
)  # fmt: skip

NEVER_DEFINED = frozenset(
    {
        "__del__",  # runs whenever the collector likes, outside every limit
        "__class__",  # would lie to isinstance in host code
        "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__",  # name what unpickling calls
        "__dict__", "__weakref__", "__mro_entries__", "__builtins__", "__globals__", "__code__",
        "__closure__",
        "__buffer__", "__release_buffer__",
    }
)  # fmt: skip
"""The dunders that no guest class may have, however it is made."""

DEFINABLE = (
    OPERATORS
    | frozenset(
        {
            "__all__", "__annotations__", "__author__", "__class_getitem__", "__delattr__",
            "__delete__", "__dir__",
            "__doc__", "__fspath__", "__get__", "__getattr__", "__getattribute__", "__getstate__", "__hash__",
            "__init__", "__init_subclass__", "__match_args__", "__module__", "__name__", "__new__",
            "__order__",
            "__post_init__", "__prepare__", "__qualname__", "__set__", "__set_name__", "__setattr__",
            "__setstate__", "__slots__", "__subclasshook__", "__version__", "__array__", "__array_priority__",
            "__signature__", "__replace__", "__rich__", "__orig_bases__", "__firstlineno__",
            "__static_attributes__",
        }
    )
) - NEVER_DEFINED  # fmt: skip
"""The dunders that a class body or a function of guest code may define."""
OF_MODULES = DEFINABLE - {"__getattr__"}  # of a module, it answers for addresses of memory (numpy)
"""The dunders that a module of guest code may define."""

STORABLE |= DEFINABLE - {
    "__getattr__", "__getattribute__", "__deepcopy__",
    "__subclasshook__", "__subclasscheck__", "__instancecheck__",
}  # fmt: skip
"""The dunders that may be stored, and only on guest objects. Others are checked when a class is made."""

NAMES = frozenset({"__name__", "__doc__", "__annotations__", "__debug__", "__class__", "__file__", "__all__"})
"""The dunder names that may be read as variables."""

PUBLIC_UNDERSCORE = frozenset(
    {"_asdict", "_replace", "_fields", "_make", "_field_defaults", "_value_", "_name_", "_missing_", "_"}
)
"""Documented members that happen to start with an underscore (namedtuple, Enum)."""


def is_dunder(name: str) -> bool:
    """Return whether *name* has the form ``__x__``."""
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def is_private(name: str) -> bool:
    """Return whether *name* starts with an underscore and is not public by its documentation."""
    return name.startswith("_") and name not in PUBLIC_UNDERSCORE and not is_dunder(name)


def is_denied(name: str) -> bool:
    """Return whether *name* is refused on every object.

    A helper of the sandbox contains ``!`` and is denied as well: it is not an identifier,
    but ``getattr`` takes any string.
    """
    return name in DENIED or "!" in name or (is_dunder(name) and name not in DUNDERS)
