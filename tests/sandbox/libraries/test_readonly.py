"""Arrays that may not be written stay as they are, also where compiled code does not ask.

Stopped by: sandbox.libraries.numpy.read_only_arrays.
"""

import pytest

KEPT = bytes(range(64, 72)) * 16
START = """
import operator
import numpy as np
a = np.frombuffer(kept, "f8")
columns = a.reshape(4, 4).T
"""

WRITES = {
    "at": "np.add.at(a, 0, 1)",
    "at, off the class": "type(np.add).at(np.add, a, 0, 1)",
    "at, mapped": "list(map(np.add.at, [a], [0], [1]))",
    "at, called by name": "operator.methodcaller('at', a, 0, 1)(np.add)",
    "at, of a function of its own": "np.frompyfunc(lambda x, y: 1.0, 2, 1).at(a, 0, 1)",
    "at, masked": "np.add.at(np.ma.array(a, copy=False), 0, 1)",
}

SCIPY = {
    "at": "import scipy.special as s; s.gamma.at(a, 0)",
    "a matrix": "import scipy.linalg as l; l.svd(columns, overwrite_a=True)",
    "a matrix, by position": "import scipy.linalg as l; l.svd(columns, True, True, True)",
    "a vector": "import scipy.linalg as l; l.solve(np.eye(4), columns, overwrite_b=True)",
    "both": "import scipy.linalg as l; l.qz(columns, columns, overwrite_a=True, overwrite_b=True)",
    "bands": "import scipy.linalg as l; l.eig_banded(columns, overwrite_a_band=True)",
    "labels": "import scipy.ndimage as n; n.label(np.ones((4, 8)), output=a.view('i4').reshape(4, 8))",
    "labels, by position": "import scipy.ndimage as n; n.label(np.ones((4, 8)), None, a.view('i4').reshape(4, 8))",
    "distances": "import scipy.spatial.distance as d; d.cdist(np.eye(4), np.eye(4), 'cosine', out=a.reshape(4, 4))",
    "distances of pairs": "import scipy.spatial.distance as d; d.pdist(np.eye(4), 'cosine', out=a[:6])",
}

SKLEARN = {
    "least angles": "import sklearn.linear_model as m; m.lars_path(columns, np.arange(4.0), copy_X=False)",
    "matching pursuit": "import sklearn.linear_model as m; m.orthogonal_mp(columns, np.arange(4.0), copy_X=False)",
}


@pytest.mark.parametrize("name", WRITES)
def test_numpy_writes_no_bytes(room, name):
    kept = bytes(bytearray(KEPT))

    assert room("numpy").refuses(START + WRITES[name], kept=kept)

    assert kept == KEPT


@pytest.mark.parametrize("name", SCIPY)
def test_scipy_writes_no_bytes(room, name):
    kept = bytes(bytearray(KEPT))

    room("scipy", "numpy").run(START + SCIPY[name], kept=kept)

    assert kept == KEPT


@pytest.mark.parametrize("name", SKLEARN)
def test_sklearn_writes_no_bytes(room, name):
    kept = bytes(bytearray(KEPT))

    assert room("sklearn", "numpy").printed(START + SKLEARN[name], kept=kept) == ""

    assert kept == KEPT


USES = [
    "x = np.zeros(3); np.add.at(x, [0, 0], 1); np.negative.at(x, slice(1, 3)); print(x)",
    "print(l.inv(m), l.solve(m, [1, 2, 3], overwrite_b=True), l.svd(m, overwrite_a=True)[1], l.inv.__name__)",
    "out = np.zeros((3, 3)); d.cdist(m, m, out=out); print(out, d.pdist(m))",
    "out = np.zeros((3, 3), 'i4'); print(n.label(m, output=out), n.label(m), out)",
]


@pytest.mark.parametrize("source", USES)
def test_what_may_be_written_is(room, native, source):
    program = f"""
import numpy as np
import scipy.linalg as l
import scipy.ndimage as n
import scipy.spatial.distance as d
m = np.eye(3) * 2
{source}
"""
    assert room("scipy", "numpy").printed(program) == native(program)
