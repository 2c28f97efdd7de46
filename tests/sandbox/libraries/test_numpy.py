"""numpy under its policy: everyday code as natively, files, memory and the process refused.

Stopped by: sandbox.libraries.numpy.
"""

import gc

import numpy as np
import pytest

EVERYDAY = {
    "annotations": "from numpy.typing import NDArray\ndef f(x: NDArray[np.float64] | None) -> NDArray: return x\nprint(f(np.ones(2)))",
    "arithmetic": "a = np.arange(6).reshape(2, 3); print(a * 2 + a.T.sum(), a @ a.T, a[:, 1], a[a > 2])",
    "statistics": "a = np.array([3., 1., 2.]); print(a.mean(), a.std(ddof=1), np.median(a), np.percentile(a, 40), a.argsort())",
    "in-place": "a = np.zeros(4); a[1:3] = 5; a += 1; a.sort(); a.fill(2); print(a)",
    "shape is written": "a = np.arange(4); b = a.reshape(2, 2); print(b.shape, b.flat[3], b.ravel(), b.size, b.dtype.name)",
    "views of a class": "a = np.array([('x', 1)], dtype=[('n', 'U3'), ('v', 'i4')])\nprint(a.view(np.recarray).v, a['v'].view(np.ndarray), np.ma.array([[1]]).view(type=np.ndarray), np.ones(2).view(np.ma.MaskedArray), np.ndarray.view(np.ones(1), np.ndarray), np.ones(1).view('u8'))",
    "bytes are swapped": "a = np.array([1, 256], 'i2'); print(a.byteswap(), np.ndarray.byteswap(a, inplace=True), a, np.int16(1).byteswap())",
    "attributes are written": "a = np.arange(4); a.real = 2; a.flat = [3, 4]; a.flags.writeable = False; print(a, a.flags.writeable)",
    "linear algebra": "a = np.array([[2., 1.], [1., 3.]]); print(np.linalg.solve(a, [1, 2]), np.linalg.det(a), np.linalg.eigh(a)[0].round(6))",
    "generator": "r = np.random.default_rng(7); print(r.normal(size=3), r.integers(0, 9, 4), r.choice([1, 2, 3], 2), r.permutation(4))",
    "legacy seed": "np.random.seed(3); print(np.random.rand(2), np.random.randint(0, 10, 3), np.random.randn(), np.random.choice(5, 2), np.random.shuffle)".replace(", np.random.shuffle", ""),
    "legacy state": "np.random.seed(3); s = np.random.get_state(); a = np.random.rand(); np.random.set_state(s); print(a == np.random.rand())",
    "fft": "print(np.fft.rfft(np.sin(np.arange(8))).round(6), np.fft.fftfreq(4))",
    "masks": "m = np.ma.masked_array([1, 2, 3], mask=[0, 1, 0]); print(m.mean(), m.filled(9), isinstance(m, np.ma.MaskedArray))",
    "data under a mask": "m = np.ma.masked_greater(np.arange(4), 2)\nm[0] = np.ma.masked\nm.data[1] = 9\nprint(m, m.data, type(m.data).__name__, np.ma.getdata(m) is m.data, np.ma.array([(1, 'a')], dtype='i4,U1').data['f1'])",
    "polynomial": "print(np.polyfit([0, 1, 2], [1, 3, 5], 1).round(6), np.polynomial.Polynomial([1, 2])(3), np.poly1d([1, 2])(4))",
    "strings": "print(np.char.upper(np.array(['a', 'b'])), np.strings.str_len(np.array(['ab'])))",
    "where and unique": "a = np.array([3, 1, 3]); print(np.where(a > 1, a, 0), np.unique(a, return_counts=True), np.bincount(a))",
    "vectorize": "f = np.vectorize(lambda x: x + 1); print(f([1, 2]), np.apply_along_axis(sum, 0, np.eye(2)), np.frompyfunc(abs, 1, 1)([-1]))",
    "structured": "a = np.zeros(2, dtype=[('x', 'i4'), ('y', 'f8')]); a['x'] = 3; print(a, a.dtype.names)",
    "text from memory": "from io import StringIO; print(np.loadtxt(StringIO('1 2\\n3 4')), np.genfromtxt(['1,2', '3,'], delimiter=','))",
    "text to memory": "from io import StringIO; s = StringIO(); np.savetxt(s, np.eye(2), fmt='%d'); print(s.getvalue())",
    "types": "a = np.zeros(2); print(type(a) is np.ndarray, isinstance(a, np.ndarray), isinstance(a[0], np.floating), type(a).__name__, issubclass(type(a), np.ndarray))",
    "bytes": "print(np.frombuffer(b'abcd', dtype='u1'), np.arange(2, dtype='i2').tobytes())",
    "dates": "print(np.datetime64('2020-01-31') + np.timedelta64(1, 'D'), np.busday_count('2020-01-01', '2020-01-31'))",
    "sliding window": "print(np.lib.stride_tricks.sliding_window_view(np.arange(5), 3).sum(axis=1))",
    "testing": "np.testing.assert_allclose([1.0], [1.0 + 1e-12]); print('same')",
    "errstate": "with np.errstate(divide='ignore'): print(np.array([1.]) / 0)",
    "printoptions": "with np.printoptions(precision=2): print(np.array([1.23456]))",
    "nditer": "print([int(x) for x in np.nditer(np.arange(3))], [i.multi_index for i in [np.nditer(np.eye(2), flags=['multi_index'])]])\na = np.arange(3)\nwith np.nditer(a, op_flags=['readwrite']) as it:\n    for x in it: x[...] = 2 * x\nprint(a, [x * y for x, y in np.nditer([a, a], ['external_loop'], order='C')])",
    "einsum": "print(np.einsum('ij,jk->ik', np.eye(2), np.ones((2, 2))), np.tensordot([1, 2], [3, 4], 1), np.outer([1, 2], [3, 4]))",
    "from imports": "from numpy import array, linalg as la; from numpy.linalg import norm; print(norm(array([3, 4])), la.inv(np.eye(2)))",
    "class with arrays": "class P:\n    def __init__(self, data): self.data = data; self.state = 1\n    def dump(self): return self.data.sum() + self.state\nprint(P(np.ones(3)).dump())",
    "nan": "a = np.array([1, np.nan]); print(np.nansum(a), np.isnan(a).any(), np.nan_to_num(a), np.inf, np.pi)",
}  # fmt: skip


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_numpy_prints_what_it_prints_natively(room, native, name):
    source = "import numpy as np\n" + EVERYDAY[name]

    assert room("numpy").printed(source) == native(source)


HOSTILE = {
    "array over bytes by an annotation": "from numpy.typing import NDArray; NDArray[np.object_](1, object, bytearray(8))",
    "pickles of a reader": "import io; b = io.BytesIO(); np.savez(b, a=1); b.seek(0); type(np.load(b))(b, allow_pickle=True)",
    "seeds of its own": "class S(np.random.SeedSequence):\n    def generate_state(self, n, dtype=np.uint32): return np.zeros(1, dtype)\nnp.random.PCG64(S(1))",
    "swapped bytes of texts": "np.array(['a' * 50], dtype=np.dtypes.StringDType()).byteswap(inplace=True)",
    "swapped bytes of texts, off the class": "type(np.zeros(1)).byteswap(np.array(['a' * 50], dtype='T'))",
    "save": "np.save(TARGET, np.zeros(2))",
    "savez": "np.savez(TARGET, np.zeros(2))",
    "savetxt": "np.savetxt(TARGET, np.zeros(2))",
    "savetxt to a path-like string": "class P(str):\n    pass\nnp.savetxt(P(TARGET), np.zeros(2))",
    "memory under a mask": "np.ma.array([len]).data.data",
    "memory of a record under a mask": "np.ma.array([(len,)], dtype='O,')[0].data.data",
    "memory off the class of masks": "type(np.ma.array([len])).data.fget(np.array([len])).data",
    "a mask whose arrays say what they are": "class A:\n    _baseclass = np.dtype('O')\n    def __array__(self, dtype=None, copy=None): return np.array([1])\nnp.ma.array(A()).data",
    "tofile": "np.zeros(2).tofile(TARGET)",
    "tofile off the class": "np.ndarray.tofile(np.zeros(2), TARGET)",
    "tofile of a scalar": "np.float64(1).tofile(TARGET)",
    "dump": "np.zeros(2).dump(TARGET)",
    "dumps of any object": "print(np.array([len], dtype=object).dumps())",
    "getattr": "getattr(np.zeros(2), 'tofile')(TARGET)",
    "methodcaller": "import operator; operator.methodcaller('tofile', TARGET)(np.zeros(2))",
    "format field": "'{0.ctypes}'.format(np.zeros(2))",
    "memmap": "np.memmap(TARGET, mode='w+', shape=3)",
    "open_memmap": "import numpy.lib.format as f; f.open_memmap(TARGET, mode='w+', shape=(3,))",
    "loadtxt": "print(np.loadtxt(SECRET, dtype=str))",
    "loadtxt with a path-like of its own": "from io import StringIO\nclass S(StringIO):\n    def __fspath__(self): return SECRET\nprint(np.loadtxt(S(), dtype=str))",
    "loadtxt hands out the real one": "class L:\n    pass\nnp.loadtxt(['1'], like=L())",
    "genfromtxt": "print(np.genfromtxt(SECRET, dtype=str))",
    "fromfile": "print(np.fromfile(SECRET, 'u1').tobytes())",
    "fromregex": "print(np.fromregex(SECRET, '(.+)', [('a', 'U60')]))",
    "rec.fromfile": "np.rec.fromfile(SECRET, formats='u1')",
    "rec.array of a file": "print(np.rec.array(b'12345678', formats='O'))",
    "runstring": "import numpy.testing as t; t.runstring('1', {})",
    "testing internals": "import numpy.testing as t; t._private",
    "ctypeslib": "import numpy.ctypeslib",
    "f2py": "import numpy.f2py",
    "core": "import numpy.core",
    "_core": "import numpy._core",
    "lib.npyio": "import numpy.lib.npyio",
    "as_strided": "np.lib.stride_tricks.as_strided(np.zeros(1), (2,), (1 << 46,))",
    "ctypes": "np.zeros(1).ctypes.data",
    "ctypes of a generator": "np.random.default_rng().bit_generator.ctypes",
    "data": "np.array([1], dtype=object).data.cast('B')",
    "memoryview": "memoryview(np.array([1], dtype=object)).cast('B')",
    "memoryview by type": "import io; type(io.BytesIO(b'1').getbuffer())(np.array([1], dtype=object))",
    "frombuffer of references": "np.frombuffer(np.array([1], dtype=object), 'u8')",
    "frombuffer of strings": "np.frombuffer(np.array(['a'], dtype='T'), 'u8')",
    "ndarray over bytes": "np.ndarray((1,), dtype=object, buffer=bytearray(8))",
    "ndarray by type": "type(np.zeros(1))((1,), dtype=object, buffer=bytearray(8))",
    "ndarray by new": "np.ndarray.__new__(np.ndarray, (1,), dtype=object, buffer=bytearray(8))",
    "ndarray by the class graph": "[c for c in np.matrix.__mro__ if c.__name__ == 'ndarray'][0]((1,), dtype=object, buffer=bytearray(8))",
    "recarray over bytes": "np.recarray((1,), dtype=[('a', 'O')], buf=bytearray(8))",
    "chararray over references": "np.char.chararray((1,), itemsize=8, buffer=np.array([1], dtype=object))",
    "ma.frombuffer": "np.ma.frombuffer(np.array([1], dtype=object), 'u8')",
    "pack_into references": "import struct; struct.pack_into('Q', np.array([1], dtype=object), 0, 8)",
    "Struct.pack_into references": "import struct; struct.Struct('Q').pack_into(np.array([1], dtype=object), 0, 8)",
    "readinto references": "import io; io.BytesIO(b'12345678').readinto(np.array([1], dtype=object))",
    "resize frees memory under a view": "a = np.zeros(9); v = a[:]; a.resize((1,), refcheck=False)",
    "views of a buffer that is freed": "i = np.nditer([np.arange(9)], ['buffered'], op_dtypes=['f8'])\nv = i[0]\ni.close()",
    "views of a buffer by type": "type(np.nditer([1]))([np.arange(9)], ['buffered'], op_dtypes=['f8']).close()",
    "state beyond the key": "np.random.set_state(('MT19937', np.zeros(624, 'u4'), 10**9))",
    "state of an instance": "np.random.RandomState(1).set_state(('MT19937', np.zeros(624, 'u4'), 10**9))",
    "state of a bit generator": "b = np.random.MT19937(); b.state = {'bit_generator': 'MT19937'}",
    "seterrcall": "np.seterrcall(print)",
    "setbufsize": "np.setbufsize(160)",
    "shared helper": "np.mgrid.sparse = True",
    "shared index helper": "np.r_.axis = 1",
    "print style": "np.polynomial.set_default_printstyle('ascii')",
    "array of a class": "np.polynomial.Polynomial.domain[0] = 9",
    "array of a class through an instance": "np.polynomial.Polynomial([1]).window[0] = 9",
    "patching": "import numpy; numpy.ndarray.sum = None",
    "super": "class A(type(np.poly1d([1]))):\n    def go(self): return super().coeffs.tofile(TARGET)\nA([1]).go()",
    "references laid over others": "np.array([None] * 4)[:2].strides = (4,)",
    "references laid over others, of a subclass": "np.rec.fromarrays([[1, 2]], names='a').strides = (1,)",
    "an array that its owner does not know": "a = np.zeros(4); setattr(a, 'dt' + 'ype', 'i2')",
    "an array that its owner does not know, masked": "np.ma.array([1, 2]).shape = (2, 1)",
    "bmat": "np.bmat('TARGET')",
    "module through a copy": "np.random.mtrand",
    "module dict": "vars(np)['memmap']",
    "from import": "from numpy import memmap",
    "star": "from numpy import *; memmap(TARGET)",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_numpy_denies(room, name):
    assert room("numpy").refuses("import numpy as np\n" + HOSTILE[name])


def test_the_hosts_generator_stands_still_while_the_guest_seeds_and_draws(room):
    before = np.random.get_state()[1].tolist()

    room("numpy").printed("import numpy as np; np.random.seed(1); np.random.rand(1000)")

    assert np.random.get_state()[1].tolist() == before


def test_a_guest_that_writes_on_its_module_leaves_the_hosts_alone(room):
    room("numpy").run("import numpy as np; np.pi = 3; np.sum = None")

    assert (round(np.pi, 2), int(np.sum([1]))) == (3.14, 1)


def test_constants_that_are_arrays_are_copies(room):
    room("numpy").printed("import numpy as np; np.polynomial.polynomial.polyx[0] = 9")

    assert np.polynomial.polynomial.polyx.tolist() == [0, 1]


LEFT_OPEN = """
import contextlib
import numpy as np
import scipy.special
def steps():
    with np.errstate(all="raise"), scipy.special.errstate(all="raise"):
        yield
kept = steps()
next(kept)
contextlib.ExitStack().enter_context(np.errstate(all="call", call=print))
"""


def test_what_happens_at_a_division_by_zero_stays_the_hosts_setting(room):
    special = pytest.importorskip(
        "scipy.special", reason="scipy is not installed: its policy cannot be tried"
    )
    before = np.geterr(), np.geterrcall(), special.geterr()

    room("numpy", "scipy").printed(LEFT_OPEN)

    assert (np.geterr(), np.geterrcall(), special.geterr()) == before
    gc.collect()  # what was left open is closed here, and not in the context of another test


def test_how_arrays_are_shown_stays_the_hosts_setting(room):
    before = np.get_printoptions()

    room("numpy").printed("""
        import contextlib
        import numpy as np
        def steps():
            with np.printoptions(precision=1):
                yield
        kept = steps()
        next(kept)
        contextlib.ExitStack().enter_context(np.printoptions(formatter={"int": lambda x: "?"}))
    """)

    assert np.get_printoptions() == before
    assert str(np.array([1, 2])) == "[1 2]"
    gc.collect()


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        ("np.ndarray((2, 2))", "write np.array(values) or np.zeros(shape)"),
        ("np.ma.MaskedArray([1])", "write np.ma.array(values, mask=mask)"),
        ("type(np.zeros(1))([1])", "write np.array(values) or np.zeros(shape)"),
    ],
)
def test_a_constructor_that_is_not_there_says_what_to_write(room, call, instead):
    error = room("numpy").run(f"import numpy as np; {call}").error

    assert str(error).endswith(f" cannot be constructed here; {instead}")
