"""Policy of numpy."""

from __future__ import annotations

import array
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.libraries.argument_checks import Stream, guarded
from agex.sandbox.libraries.numpy.read_only_arrays import at_positions
from agex.sandbox.patches.stdlib_caches import exact
from agex.sandbox.policy.library import Library, Replacements, less, only
from agex.sandbox.policy.library_members import unsealed
from agex.sandbox.stdlib.struct import ARRAY

__all__ = ["DENIED", "LIBRARIES"]

_TOP = less(
    "memmap",  # maps a file
    # change how numpy works for the whole process; what seterr and set_printoptions set ends with the run
    "seterrcall setbufsize geterrcall",
    # take raw memory from other objects
    "from_dlpack nested_iters",
    # np.bmat looks names up in the frame that calls it
    "bmat",
    # show files and settings of the machine, run numpy's own tests
    "info show_config show_runtime get_include test",
)

_MODULES = {
    "": _TOP,
    "char": less("chararray"),  # its constructor takes a buffer
    "dtypes": less(),
    "exceptions": only("*Error *Warning"),
    "fft": less("test"),
    "lib": only("NumpyVersion"),
    "lib.scimath": less(),
    "lib.stride_tricks": only("sliding_window_view"),  # as_strided reaches any address
    "linalg": less("test"),
    # masked_print_option is shared with the host; frombuffer and fromflex take raw memory
    "ma": less("test masked_print_option frombuffer fromflex set_fill_value"),
    "polynomial": less("test set_default_printstyle"),  # the style is the process's
    **{
        f"polynomial.{name}": less("set_default_printstyle polyutils")
        for name in ("chebyshev", "hermite", "hermite_e", "laguerre", "legendre", "polynomial")
    },
    "random": less("test get_bit_generator set_bit_generator"),  # the last two swap the host's generator
    "rec": less("fromfile fromstring format_parser"),  # records over raw bytes
    "strings": less(),
    "testing": only(
        "assert_allclose assert_almost_equal assert_approx_equal assert_array_almost_equal",
        "assert_array_equal assert_array_less assert_equal assert_raises assert_string_equal assert_",
    ),
    "typing": only("ArrayLike DTypeLike"),
}
"""Not listed: f2py, ctypeslib, distutils (compilers and shared libraries), matlib, core, lib.format,
lib.npyio, lib.introspect, lib.array_utils, lib.recfunctions, lib.user_array, testing's other names
(they run text as code, spawn and open files)."""

DENIED = frozenset(
    """
    ctypes cffi capsule lock data dump dumps resize debug_print set_state
    BitGenerator.state MT19937.state PCG64.state PCG64DXSM.state Philox.state SFC64.state
    MaskedArray.torecords MaskedArray.toflex
    ABCPolyBase.domain ABCPolyBase.window
    """.split()
    # ctypes, cffi, capsule: addresses and native functions; lock: the generator's own
    # data: raw memory of arrays that hold references; memoryview(a) is sealed for the same reason
    # dump, dumps: pickles, which hold private state of any object
    # resize(refcheck=False) leaves views of freed memory; np.resize makes a new array
    # state, set_state: positions are not checked, reads run past the key
    # domain, window: arrays of the class, shared with host polynomials
)

_PLAIN_BUFFERS = (bytes, bytearray, array.array, ARRAY["array"], memoryview)


def _frombuffer(real: Callable[..., Any], buffer: Any, *args: Any, **kwargs: Any) -> Any:
    """Check that the memory holds no references, which numbers written to it would forge."""
    np: Any = import_module("numpy")

    if "like" in kwargs:
        raise SandboxTypeError("frombuffer(like=...) is not available")
    is_plain = isinstance(buffer, (np.ndarray, np.generic)) and buffer.dtype.kind in "biufcSUVmM"
    if type(buffer) not in _PLAIN_BUFFERS and not (is_plain and not buffer.dtype.hasobject):
        raise SandboxTypeError(f"frombuffer() takes bytes here, not {type(buffer).__name__}")
    return real(buffer, *args, **kwargs)


class _NDArray:
    """``numpy.typing.NDArray`` for annotations; the real one leads to the class ndarray itself."""

    def __class_getitem__(cls, item: Any) -> type[_NDArray]:
        return cls


_NDArray.__name__ = _NDArray.__qualname__ = "NDArray"
_NDArray.__module__ = "numpy.typing"


def _rec_array(real: Callable[..., Any], obj: Any, *args: Any, **kwargs: Any) -> Any:
    """Check that records are not laid over raw bytes or read from a file."""
    np: Any = import_module("numpy")

    if not isinstance(obj, (list, tuple, np.ndarray)):
        raise SandboxTypeError(f"rec.array() takes a list or an array here, not {type(obj).__name__}")
    return real(obj, *args, **kwargs)


def _nditer(real: Callable[..., Any], op: Any, flags: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Check that there is no buffer: views of it outlive it, over freed memory."""
    flags = None if flags is None else [str.__str__(flag) for flag in flags]
    if flags is not None and "buffered" in flags:
        raise SandboxError("nditer(flags=['buffered']) is not available; use a.astype() and no buffer")
    return real(op, flags, *args, **kwargs)


def _set_state(real: Callable[..., Any], state: Any) -> None:
    """Check the position, which numpy does not."""
    state = tuple(state) if isinstance(state, (tuple, list)) else ()
    size = 624  # words of a Mersenne Twister's key
    if not 3 <= len(state) <= 5 or type(state[2]) is not int or not 0 <= state[2] <= size:
        raise SandboxError(
            f"a state is ('MT19937', {size} integers, position up to {size}), as get_state() gives"
        )
    real(state)


def _seed(real: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Check that it is not the generator of the process, which functions that draw from it hand out."""
    np: Any = import_module("numpy")

    if getattr(real, "__self__", args[0] if args else None) is np.random.mtrand._rand:
        raise SandboxError("this generator is the host's; make your own: np.random.RandomState(1)")
    real(*args, **kwargs)


def _byteswap(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Check that the bytes are numbers: those of a StringDType hold addresses of texts."""
    array: Any = getattr(real, "__self__", args[0] if args else None)
    if hasattr(array, "dtype") and array.dtype.kind == "T":
        raise SandboxTypeError("byteswap() is for numbers")
    return real(*args, **kwargs)


def _view(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Replace stand-ins of array classes by the real ones: numpy would take them for a dtype of objects."""
    return real(*map(_array_class, args), **{name: _array_class(value) for name, value in kwargs.items()})


def _array_class(said: Any) -> Any:
    """Return the real class of arrays for its stand-in; anything else as it is."""
    np: Any = import_module("numpy")

    known = (np.ndarray, np.matrix, np.recarray, np.ma.MaskedArray)
    return next((each for each in known if unsealed(said) is each), said)


def _to_file(real: Callable[..., Any], fid: Any, sep: Any = "", format: Any = "%s") -> None:  # noqa: A002
    """Write the bytes into the workspace: the real one writes with C's own stdio."""
    array: Any = getattr(real, "__self__", None)
    if array is None or exact(sep) != "":
        raise SandboxError("a.tofile(path) writes bytes here; use np.savetxt(path, a) for text")
    Stream(keyword="file", writes=True, copied=True)(lambda file: file.write(array.tobytes()), fid)


def _from_file(file: Any, dtype: Any = float, count: Any = -1, sep: Any = "", offset: Any = 0) -> Any:
    """Read bytes of the workspace as an array."""
    np: Any = import_module("numpy")

    kind = np.dtype(dtype)
    if kind.hasobject or exact(sep) != "":
        raise SandboxError(
            "np.fromfile(path, dtype) reads bytes of numbers here; use np.loadtxt(path) for text"
        )
    found: bytes = Stream(keyword="file", copied=True)(lambda file: file.read(), file)
    return np.frombuffer(found, kind, int(count), int(offset)).copy()


def _replace(files: bool) -> Replacements:
    np: Any = import_module("numpy")

    lines = (list, tuple)
    plain = {"allow_pickle": False}
    packed = plain if "allow_pickle" in inspect.signature(np.savez).parameters else {}
    like = ("like",)  # passes numpy's own functions to a guest method
    return {
        "": {
            # a path or URL, or a stream, or lines; numpy keeps an open() of its own from when it was loaded
            "loadtxt": guarded(
                np.loadtxt, Stream(keyword="fname", copied=True, also=lines, without=like, files=files)
            ),
            "genfromtxt": guarded(
                np.genfromtxt, Stream(keyword="fname", copied=True, also=lines, without=like, files=files)
            ),
            "fromregex": guarded(np.fromregex, Stream(keyword="file", copied=True, files=files)),
            "savetxt": guarded(np.savetxt, Stream(keyword="fname", copied=True, writes=True, files=files)),
            # of numbers and text; arrays of objects are pickles
            "load": guarded(
                np.load,
                Stream(keyword="file", copied=True, without=("mmap_mode",), fixed=plain, most=1, files=files),
            ),
            "save": guarded(np.save, Stream(keyword="file", writes=True, fixed=plain, most=2, files=files)),
            "savez": guarded(np.savez, Stream(keyword="file", writes=True, fixed=packed, files=files)),
            "savez_compressed": guarded(
                np.savez_compressed, Stream(keyword="file", writes=True, fixed=packed, files=files)
            ),
            "frombuffer": guarded(np.frombuffer, _frombuffer),
            "nditer": guarded(np.nditer, _nditer),
            "fromfile": _from_file,
        },
        "ma": {"masked_array": np.ma.array},
        "rec": {"array": guarded(np.rec.array, _rec_array)},
        "random": _own_random(),
        "typing": {"NDArray": _NDArray},
    }


def _own_random() -> dict[str, Any]:
    """Return the functions of ``np.random`` over a new generator of the session."""
    np: Any = import_module("numpy")

    own = np.random.RandomState()
    functions = {name: getattr(own, name) for name in np.random.__all__ if hasattr(own, name)}
    functions |= {"ranf": own.random_sample, "sample": own.random_sample}
    return functions | {"set_state": guarded(own.set_state, _set_state)}


LIBRARIES = {
    "numpy": Library(
        name="numpy",
        modules=_MODULES,
        denied=DENIED,
        answered=frozenset({"MaskedArray.data"}),  # an array, as np.ma.getdata() gives it
        guarded={
            "RandomState.seed": _seed,
            "byteswap": _byteswap,
            "ndarray.view": _view,
            "tofile": _to_file,
            "ufunc.at": at_positions,
        },
        # generators read their first state from the memory of their results
        whole=frozenset({"ISeedSequence", "SeedSequence"}),
        # not the helpers that are shared: np.r_, np.mgrid
        writable=frozenset({"ndarray", "flagsobj", "poly1d", "ABCPolyBase"}),
        # strides lay references over halves of two; an object that has looked at the shape and the dtype of
        # its array, with compiled code that goes by them, holds the same array
        fixed=frozenset({"ndarray.dtype", "ndarray.shape", "ndarray.strides"}),
        instead={
            "ndarray.dtype": "write a = a.view(dtype) or a.astype(dtype)",
            "ndarray.shape": "write a = a.reshape(shape)",
            "ndarray.strides": "index the array, or write a.T",
            "resize": "write a = np.resize(a, shape)",
        },
        # Their constructors lay an array over a buffer: np.ndarray(1, object, bytearray(8)) is any reference.
        # The classes below it would lead to it. An iterator may have a buffer.
        sealed=(
            "numpy.ndarray",
            "numpy.matrix",
            "numpy.memmap",
            "numpy.nditer",
            "numpy.rec.recarray",
            "numpy.recarray",
            "numpy.char.chararray",
            "numpy.ma.MaskedArray",
            "numpy.ma.core.MaskedArray",
            "numpy.ma.mvoid",
            "numpy.ma.core.mvoid",
            "numpy.lib.npyio.NpzFile",  # made by hand, it takes pickles
        ),
        builtins=(memoryview,),
        brings=("io", "struct"),
        own={"random": _own_random},
        replace=_replace,
    )
}
