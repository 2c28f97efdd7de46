"""Policy of scipy, and of its sparse matrices."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from agex.sandbox.libraries.argument_checks import Stream, copies_for_functions, guarded
from agex.sandbox.libraries.numpy.random import draw_from_own, hold_own
from agex.sandbox.libraries.numpy.read_only_arrays import into, keeping_inputs
from agex.sandbox.libraries.scipy.function_guards import (
    factorized,
    grey_morphology,
    metric_of_rank,
    numbers,
    predecessors,
    spline,
)
from agex.sandbox.patches.library_caches import hold
from agex.sandbox.patches.replacement import replace
from agex.sandbox.policy.library import Guard, Library, Replacements, less, only
from agex.sandbox.runtime.context import CURRENT

__all__ = ["LIBRARIES", "prepare"]

_WHOLE = """
    cluster cluster.hierarchy cluster.vq constants integrate interpolate ndimage optimize signal
    signal.windows sparse.csgraph spatial.distance spatial.transform stats stats.contingency
    stats.mstats stats.qmc
""".split()

_MODULES = {
    "": only(),
    **{name: less("test") for name in _WHOLE},
    "cluster.hierarchy": less("test set_link_color_palette"),  # the process's; dendrogram(link_color_func=)
    # backends and workers are the process's
    "fft": less("test *_backend *_workers"),
    # the functions found by name are compiled code that trusts its sizes
    "linalg": less("test find_best_blas_type get_*_funcs blas lapack cython_* interpolative"),
    "sparse": less("test"),
    "sparse.linalg": less("test use_solver"),  # the process's
    "spatial": less("test"),
    "special": less("test seterr geterr"),
}
"""Not listed: io and odr (their C++ and Fortran open files), datasets (the network), fftpack, misc,
LowLevelCallable (addresses of functions)."""


_POSITIONS = frozenset(
    {
        "cKDTree.indices",
        "cKDTreeNode.indices",
        # compiled code finds a point's triangle by these
        *(
            f"Delaunay.{name}"
            for name in (
                "convex_hull coplanar equations max_bound min_bound neighbors points simplices transform",
                "vertex_to_simplex",
            )
            for name in name.split()
        ),
        # their shape goes with offsets and positions
        "_dia_base.data",
        "_bsr_base.data",
    }
)
"""Data that compiled code follows without a check, once it is made."""

_FUNCTIONS: dict[str, dict[str, Guard]] = {
    "interpolate": {
        "insert": spline(1),
        "spalde": spline(1),
        "splantider": spline(0),
        "splder": spline(0),
        "splev": spline(1),
        "splint": spline(2),
        "sproot": spline(0),
    },
    "ndimage": {
        "distance_transform_cdt": metric_of_rank,
        "label": into(2, "output"),
        **dict.fromkeys(
            """
            black_tophat grey_closing grey_dilation grey_erosion grey_opening morphological_gradient
            morphological_laplace white_tophat
            """.split(),
            grey_morphology,
        ),
    },
    "optimize": dict.fromkeys(("fsolve", "leastsq", "root"), copies_for_functions),
    "sparse.csgraph": {"construct_dist_matrix": predecessors(2), "reconstruct_path": predecessors(1)},
    "sparse.linalg": {"spilu": factorized, "splu": factorized},
    "spatial.distance": {"cdist": into(3, "out"), "pdist": into(2, "out"), "squareform": numbers},
}
"""Functions whose compiled code trusts its arguments."""

_TABLEAUX = frozenset(
    """
    RungeKutta.A RungeKutta.B RungeKutta.C RungeKutta.E RungeKutta.P
    RungeKutta.A_EXTRA RungeKutta.C_EXTRA RungeKutta.D RungeKutta.E3 RungeKutta.E5
    """.split()
)
"""Arrays of a class, shared with the differential equations of the host."""


def prepare() -> None:
    """Check positions in sparse matrices, and draw distributions from the session's generator."""
    check_positions()
    draw_from_own("scipy._lib._util", "check_random_state")
    hold(import_module("scipy.integrate._quadrature"), "_cached_roots_legendre")
    infrastructure: Any = import_module("scipy.stats._distn_infrastructure")
    multivariate: Any = import_module("scipy.stats._multivariate")
    for class_ in (infrastructure.rv_generic, multivariate.multi_rv_generic):
        hold_own(class_, "_random_state")


def check_positions() -> None:
    """Check the positions of which guest code makes a sparse matrix, and keep a copy of them."""
    for module, name in (
        ("_compressed", "_cs_matrix"),
        ("_bsr", "_bsr_base"),
        ("_coo", "_coo_base"),
        ("_dia", "_dia_base"),
    ):
        class_: Any = getattr(import_module(f"scipy.sparse.{module}"), name, None)
        if class_ is not None:
            replace(class_, "__init__", _checking)


def _checking(real: Any) -> Any:
    def __init__(  # noqa: N807 - it stands for the one of the class
        self: Any,
        arg1: Any,
        shape: Any = None,
        dtype: Any = None,
        copy: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        of_parts = CURRENT.get() is not None and isinstance(arg1, tuple)
        real(self, arg1, shape, dtype, copy or of_parts, *args, **kwargs)
        if of_parts and hasattr(self, "check_format"):
            self.check_format(full_check=True)
        elif (
            of_parts
            and self.format == "dia"
            and any(abs(int(each)) > max(self.shape) for each in self.offsets)
        ):
            raise ValueError("offsets must lie within the matrix")

    return __init__


def _replace(files: bool) -> Replacements:
    linalg: Any = import_module("scipy.linalg")
    sparse: Any = import_module("scipy.sparse")

    kept = {name: keeping_inputs(getattr(linalg, name)) for name in linalg.__all__}
    matrix = Stream(position=0, keyword="file", in_memory=True, most=1, files=files)
    saved = Stream(position=0, keyword="file", in_memory=True, writes=True, most=2, files=files)
    return {
        "linalg": {name: function for name, function in kept.items() if function is not None},
        "sparse": {
            "load_npz": guarded(sparse.load_npz, matrix),
            "save_npz": guarded(sparse.save_npz, saved),
        },
    }


LIBRARIES = {
    "scipy": Library(
        name="scipy",
        modules=_MODULES,
        # the positions in a sparse matrix, which compiled code follows without a check
        denied=frozenset(
            f"{owner}.{name}"
            for owner in (
                "_data_matrix",
                "_cs_matrix",
                "_coo_base",
                "_csr_base",
                "_csc_base",
                "_bsr_base",
                "_dia_base",
            )
            for name in ("indices", "indptr", "row", "col", "coords", "offsets")
        )
        | _TABLEAUX,
        functions=_FUNCTIONS,
        whole=frozenset({"_spbase", "spmatrix", "_QhullUser", "NDInterpolatorBase", "BSpline", "Sobol"}),
        copied=_POSITIONS,
        brings=("numpy",),
        offers=("numpy",),
        prepare=prepare,
        replace=_replace,
    ),
}
