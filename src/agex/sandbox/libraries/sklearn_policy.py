"""What guest code may do with scikit-learn."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from agex.sandbox.context import CURRENT
from agex.sandbox.formatting import is_plain_format, safe_format
from agex.sandbox.libraries import scipy_policy
from agex.sandbox.libraries.checks import Stream, guarded
from agex.sandbox.libraries.library import Library, Replacements, less, only

__all__ = ["LIBRARIES"]

_WHOLE = """
    base calibration cluster compose covariance cross_decomposition decomposition discriminant_analysis dummy
    ensemble exceptions feature_extraction feature_extraction.text feature_selection gaussian_process
    gaussian_process.kernels impute isotonic kernel_approximation kernel_ridge linear_model manifold
    metrics.pairwise
    mixture multiclass multioutput naive_bayes neighbors neural_network pipeline preprocessing
    random_projection semi_supervised svm
""".split()

_MODULES = {
    "": only("clone"),  # set_config, config_context: the process's; show_versions: the machine's
    **{name: less("*Display") for name in _WHOLE},  # displays draw with matplotlib
    # fetch_*: the network; load_files, *_svmlight_*, *_data_home: files
    "datasets": only("make_* load_breast_cancer load_diabetes load_digits load_iris load_linnerud load_wine"),
    "inspection": only("permutation_importance partial_dependence"),
    "metrics": less("*Display"),
    "model_selection": less("*Display Halving*"),  # experimental: importing them changes the library
    "tree": less("plot_tree"),
    "utils": only("shuffle resample Bunch check_random_state"),
}
"""Not listed: experimental, externals, callback, the other modules of utils."""


def _prepare() -> None:
    """Have the cores counted and the thread pools found, as the first fit would.

    Another program is asked, and shared libraries are loaded by name. Both are remembered.
    """
    joblib: Any = import_module("joblib")

    joblib.cpu_count(only_physical_cores=True)
    _prepare_names()
    _prepare_jobs()
    scipy_policy.check_positions()
    with suppress(ImportError):  # of another version
        pools: Any = import_module("sklearn.utils.parallel")
        with pools._get_threadpool_controller().limit(limits=1, user_api="blas"):
            pass


def _prepare_jobs() -> None:
    """Have ``n_jobs`` start no processes while guest code runs: loky does so without an event."""
    backends: Any = import_module("joblib._parallel_backends")
    for backend in (backends.LokyBackend, backends.MultiprocessingBackend):
        if backend.effective_n_jobs.__module__ != __name__:
            backend.effective_n_jobs = _alone(backend.effective_n_jobs)


def _alone(real: Any) -> Any:
    def effective_n_jobs(self: Any, n_jobs: int | None) -> Any:
        return real(self, n_jobs if CURRENT.get() is None else 1)

    return effective_n_jobs


def _prepare_names() -> None:
    """Have names of columns that a format string makes read attributes as guest code may, while that runs."""
    columns: Any = import_module("sklearn.compose._column_transformer")
    real = getattr(columns, "_feature_names_out_with_str_format", None)  # since scikit-learn 1.6
    if real is None or real.__module__ == __name__:
        return

    def named(transformer_name: str, feature_name: str, str_format: str) -> str:
        guards = CURRENT.get()
        if guards is None or is_plain_format(str_format):
            return str(real(transformer_name, feature_name, str_format))
        names = {"transformer_name": transformer_name, "feature_name": feature_name}
        return safe_format(guards.getattr, str_format, **names)

    columns._feature_names_out_with_str_format = named


def _replace(files: bool) -> Replacements:
    tree: Any = import_module("sklearn.tree")

    graph = Stream(position=1, keyword="out_file", optional=True, writes=True, files=files)
    return {"tree": {"export_graphviz": guarded(tree.export_graphviz, graph)}}


LIBRARIES = {
    "sklearn": Library(
        name="sklearn",
        modules=_MODULES,
        # the first two: views of nodes that compiled code follows without a check; the others: data
        # of a class, which the host's models share
        denied=frozenset({"tree_", "get_arrays", "loss_functions", "valid_metrics"}),
        brings=("numpy", "scipy"),
        preload=("joblib", "multiprocessing.dummy", "multiprocessing.pool", "scipy", "threadpoolctl"),
        prepare=_prepare,
        replace=_replace,
    ),
}
