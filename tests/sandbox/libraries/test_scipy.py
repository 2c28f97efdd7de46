"""scipy under its policy: what compiled code trusts is checked, or is a copy.

Stopped by: sandbox.libraries.scipy.
"""

import pytest

pytest.importorskip("scipy", reason="scipy is not installed: its policy cannot be tried")

START = """
import numpy as np
import scipy.interpolate as I, scipy.ndimage as nd, scipy.optimize as O, scipy.sparse as sp, scipy.spatial as P
import scipy.sparse.csgraph as cg, scipy.sparse.linalg as SL, scipy.spatial.distance as D
"""

REFUSED = {
    "references copied without being counted": "D.squareform([[0, len], [len, 0]], checks=False)",
    "a metric of another rank": "nd.distance_transform_cdt(np.ones((3, 3)), True)",
    "a footprint of nothing": "nd.grey_erosion(np.ones((3, 3)), footprint=np.zeros((3, 3)), structure=np.ones((3, 3)))",
    "a structure without values": "nd.white_tophat(np.ones((3, 3)), footprint=np.ones((3, 3)), structure=np.ones((1, 1)))",
    "a degree beyond the knots": "I.splev(1.0, (np.arange(10.0), np.arange(2.0), 300))",
    "a spline of too few knots": "I.splev(1.0, (np.arange(2.0), np.arange(2.0), 3))",
    "coefficients that are not there": "I.insert(1.0, (np.arange(10.0), np.arange(2.0), 3))",
    "a predecessor that is no node": "cg.reconstruct_path(sp.csr_array(np.eye(3)), np.array([1.0, np.nan, 3.0]), b'a')",
    "predecessors that are no nodes": "cg.construct_dist_matrix(np.ones((3, 3)), np.full((3, 3), 10**8))",
    "offsets beyond a matrix": "sp.dia_matrix((np.ones((1, 3)), [2**31 - 1]), shape=(3, 3)).sum(0)",
    "the process's solver": "SL.use_solver(useUmfpack=False)",
    "values of an interpolator": "I.LinearNDInterpolator(np.random.rand(9, 2), np.ones((9, 50))).values.shape = (1, 450)",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_scipy_is_not_given_what_it_would_not_check(room, name):
    result = room("numpy", "scipy").run(START + REFUSED[name])

    assert result.error is not None


KEPT = {
    "positions in a tree": "t = P.cKDTree(np.eye(3)); t.indices[:] = 10**12; print(t.query([[1, 0, 0]]))",
    "positions in a node of a tree": "t = P.cKDTree(np.eye(3)); t.tree.indices[:] = 10**12; print(t.query([[1, 0, 0]]))",
    "triangles": "t = P.Delaunay([(0, 0), (0, 1), (1, 0)]); t.simplices[:] = 10**8; t.neighbors[:] = 10**8; print(t.find_simplex([[0.2, 0.2]]))",
    "permutations": "m = SL.splu(sp.csc_matrix(np.eye(3) * 2)); m.perm_r[:] = 10**8; m.perm_c[:] = 10**8; print(m.solve(np.ones(3)))",
    "diagonals": "m = sp.dia_matrix(np.eye(3)); m.data[:] = 9; print(m @ np.ones(3))",
    "blocks": "m = sp.bsr_matrix(np.eye(4), blocksize=(2, 2)); m.data[:] = 9; print(m @ np.ones(4))",
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_compiled_code_follows_is_handed_out_as_a_copy(room, name):
    made, *_, printed = KEPT[name].split("; ")

    assert room("numpy", "scipy").printed(START + KEPT[name]) == room("numpy", "scipy").printed(
        f"{START}{made}; {printed}"
    )


CALLBACKS = {
    "fsolve": "O.fsolve(note, [1.0, 2.0])",
    "its derivative": "O.fsolve(lambda x: x**2 - 2, [1.0, 2.0], fprime=lambda x: np.diag(2 * note(x)))",
    "root": "O.root(note, [1.0, 2.0], method='hybr')",
    "a class": "class C:\n    def __new__(cls, x): return note(x)\nO.fsolve(C, [1.0, 2.0])",
    "leastsq": "O.leastsq(func=note, x0=[1.0, 2.0])",
}


@pytest.mark.parametrize("call", CALLBACKS.values(), ids=CALLBACKS)
def test_what_a_function_is_given_is_not_memory_that_is_freed(room, call):
    source = f"{START}kept = []\ndef note(x):\n    kept.append(x)\n    return x**2 - 2\n{call}\n"

    assert room("numpy", "scipy").printed(source + "print({x.flags.owndata for x in kept})") == "{True}\n"


EVERYDAY = {
    "distances": "print(D.squareform([1.0, 2.0, 3.0]), D.squareform(np.zeros((3, 3))), D.pdist(np.eye(3)))",
    "transforms": "a = np.eye(3); print(nd.distance_transform_cdt(a), nd.distance_transform_cdt(a, metric=np.ones((3, 3))))",
    "morphology": "a = np.eye(3); print(nd.grey_erosion(a, size=(3, 3)), nd.white_tophat(a, structure=np.ones((3, 3))), nd.grey_closing(a, 3))",
    "paths": "g = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]); d, p = cg.shortest_path(g, return_predecessors=True); print(cg.construct_dist_matrix(g, p), cg.reconstruct_path(g, p[0]).toarray())",
    "splines": "t = I.splrep(np.arange(10.0), np.arange(10.0) ** 2); print(I.splev(2.5, t), I.splev(2.5, tck=t, der=1), I.splint(0, 1, t), I.sproot(t), I.splder(t)[2], I.spalde(2.5, t))",
    "curves": "t, u = I.splprep([np.arange(10.0), np.arange(10.0) ** 2]); print(I.splev(0.5, t))",
    "splines that are objects": "b = I.make_interp_spline(np.arange(10.0), np.arange(10.0) ** 2); print(I.splev(2.5, b), I.insert(2.5, b)(3.0), I.splder(b)(2.0))",
    "roots": "print(O.fsolve(lambda x, a: x**2 - a, [1.0], args=(2,)), O.root(lambda x: (x - 1, np.eye(1)), [0.0], jac=True).x, O.curve_fit(lambda x, a: a * x, [1, 2], [2, 4])[0])",
    "factorizations": "m = SL.splu(sp.csc_matrix(np.eye(3) * 2)); print(m.solve(np.ones(3)), m.L.toarray(), m.shape, m.nnz, m.perm_c)",
    "diagonal matrices": "m = sp.dia_matrix((np.ones((2, 3)), [0, 2]), shape=(3, 3)); print(m @ np.ones(3), m.data, sp.eye(3).sum())",
    "trees": "t = P.cKDTree(np.eye(3)); print(t.query([[1, 0, 0]]), t.indices, P.Delaunay([(0, 0), (0, 1), (1, 0)]).simplices)",
}  # fmt: skip


@pytest.mark.parametrize("source", EVERYDAY.values(), ids=EVERYDAY)
def test_everyday_scipy_prints_what_it_prints_natively(room, native, source):
    assert room("numpy", "scipy").printed(START + source) == native(START + source)
