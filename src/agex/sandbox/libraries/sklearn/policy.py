"""Policy of scikit-learn."""

from __future__ import annotations

import functools
from contextlib import suppress
from importlib import import_module
from typing import Any

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.classes.errors import check_keywords, refusal
from agex.sandbox.libraries.argument_checks import Stream, copies_for_functions, guarded
from agex.sandbox.libraries.numpy.random import draw_from_own
from agex.sandbox.libraries.scipy import policy as scipy_policy
from agex.sandbox.libraries.sklearn.model_checks import of_own_estimator, prepare_models
from agex.sandbox.patches.replacement import replace, replace_everywhere
from agex.sandbox.policy import catalog
from agex.sandbox.policy.library import Library, Replacements, less, only
from agex.sandbox.policy.library_grant import prepare
from agex.sandbox.runtime import audit_hook
from agex.sandbox.runtime.context import CURRENT, asking
from agex.sandbox.stdlib.string_format import is_plain_format, safe_format

__all__ = ["LIBRARIES"]

_WHOLE = """
    cluster compose covariance cross_decomposition decomposition discriminant_analysis
    ensemble exceptions feature_extraction feature_extraction.text feature_selection gaussian_process
    impute isotonic linear_model manifold
    mixture multiclass multioutput naive_bayes neighbors neural_network pipeline preprocessing
    random_projection semi_supervised svm
""".split()

_WITHOUT_LIST = {
    "base": only("*Mixin BaseEstimator InconsistentVersionWarning clone is_* *Tags get_tags check_is_fitted"),
    "calibration": only("CalibratedClassifierCV CalibrationDisplay calibration_curve"),
    "dummy": only("DummyClassifier DummyRegressor"),
    "gaussian_process.kernels": only(
        "*Kernel *KernelMixin DotProduct ExpSineSquared Exponentiation Hyperparameter KernelOperator Matern",
        "Product RBF RationalQuadratic Sum",
    ),
    "kernel_approximation": only(
        "AdditiveChi2Sampler Nystroem PolynomialCountSketch RBFSampler SkewedChi2Sampler"
    ),
    "kernel_ridge": only("KernelRidge"),
    # kernel_metrics, distance_metrics: give the tables of the process
    "metrics.pairwise": only("*_distances *_kernel cosine_similarity paired_* pairwise_*"),
    # not has_fit_parameter, which asks the signature; check_memory: caches on disk
    "utils.validation": only(
        "check_array check_consistent_length check_is_fitted check_random_state check_X_y column_or_1d"
    ),
    "utils.class_weight": only("compute_class_weight compute_sample_weight"),
    "utils.multiclass": only("check_classification_targets type_of_target unique_labels"),
}
"""Modules without a list of public names. They also hold what they import: Python's signature(), which
evaluates annotations, and settings of the process."""

_MODULES = {
    "": only("clone set_config config_context get_config"),  # show_versions: the machine's
    **{name: less() for name in _WHOLE},
    **_WITHOUT_LIST,
    # fetch_*: the network; load_files, *_svmlight_*, *_data_home: files
    "datasets": only("make_* load_breast_cancer load_diabetes load_digits load_iris load_linnerud load_wine"),
    "inspection": only(
        "permutation_importance partial_dependence DecisionBoundaryDisplay PartialDependenceDisplay"
    ),
    "metrics": less(),
    "model_selection": less("Halving*"),  # experimental: importing them changes the library
    "tree": less(),
    "utils": only(
        "shuffle resample Bunch check_array check_consistent_length check_random_state check_X_y",
        "column_or_1d compute_class_weight compute_sample_weight",
    ),
}
"""Not listed: experimental, externals, callback, the other modules of utils."""


def _prepare() -> None:
    """Count the cores and find the thread pools now, as the first fit would.

    That asks another program, and loads shared libraries by name. Both results are cached.
    """
    joblib: Any = import_module("joblib")

    joblib.cpu_count(only_physical_cores=True)
    _prepare_names()
    _prepare_members()
    _prepare_jobs()
    _prepare_displays()
    prepare_models()
    scipy_policy.prepare()
    draw_from_own("sklearn.utils.validation", "check_random_state")
    with suppress(ImportError):  # of another version
        pools: Any = import_module("sklearn.utils.parallel")
        with pools._get_threadpool_controller().limit(limits=1, user_api="blas"):
            pass


def _prepare_displays() -> None:
    """Prepare matplotlib before a display of guest code draws: scikit-learn loads it only then."""
    replace_everywhere("sklearn.utils._optional_dependencies", "check_matplotlib_support", _drawing)


def _drawing(real: Any) -> Any:
    def check_matplotlib_support(caller_name: Any) -> None:
        if asking() is not None:
            _load_matplotlib()
        real(caller_name)

    return check_matplotlib_support


def _load_matplotlib() -> None:
    audit_hook.call_as_host(import_module, "matplotlib.pyplot")
    library = catalog.find("matplotlib")
    assert library is not None, "it has a policy"
    prepare(library)


def _plot_tree(real: Any, *args: Any, **kwargs: Any) -> Any:
    _load_matplotlib()
    return real(*args, **kwargs)


_NEVER = frozenset({"array_api_dispatch", "pairwise_dist_chunk_size", "skip_parameter_validation"})
"""Settings on which compiled code relies, and one that loads other libraries."""


def _settings(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Check which settings guest code changes; the run puts them back."""
    for name in _NEVER & kwargs.keys():
        raise SandboxError(f"{real.__name__}({name}=...) belongs to the host; leave it out")
    if args:
        raise SandboxTypeError(f"{real.__name__}() takes keywords here: transform_output='pandas'")
    return real(**kwargs)


def _prepare_jobs() -> None:
    """Start no processes for ``n_jobs`` while guest code runs: loky does so without an audit event."""
    backends: Any = import_module("joblib._parallel_backends")
    for backend in (backends.LokyBackend, backends.MultiprocessingBackend):
        replace(backend, "effective_n_jobs", _alone)


def _alone(real: Any) -> Any:
    def effective_n_jobs(self: Any, n_jobs: int | None) -> Any:
        return real(self, n_jobs if CURRENT.get() is None else 1)

    return effective_n_jobs


def _prepare_names() -> None:
    """Read attributes in column names made by a format string as guest code may."""
    columns: Any = import_module("sklearn.compose._column_transformer")
    replace(columns, "_feature_names_out_with_str_format", _named)  # since scikit-learn 1.6


def _named(real: Any) -> Any:
    def named(transformer_name: str, feature_name: str, str_format: str) -> str:
        guards = None if is_plain_format(str_format) else asking()
        if guards is None:
            return str(real(transformer_name, feature_name, str_format))
        names = {"transformer_name": transformer_name, "feature_name": feature_name}
        return safe_format(guards.getattr, str_format, **names)

    return named


def _prepare_members() -> None:
    """Read members named by a text, or by a guest ``__init__``, as guest code may."""
    base: Any = import_module("sklearn.base").BaseEstimator
    kernel: Any = import_module("sklearn.gaussian_process.kernels").Kernel
    for class_ in (base, kernel):
        replace(class_, "get_params", _readable)
        replace(class_, "set_params", _storable)
    replace(import_module("sklearn.feature_selection._base"), "attrgetter", _getter)
    for name in ("ensemble._stacking", "calibration", "metrics._scorer", "utils._response", "multioutput"):
        # since scikit-learn 1.3
        replace(import_module(f"sklearn.{name}"), "_check_response_method", _response)


def _readable(real: Any) -> Any:
    def get_params(self: Any, deep: bool = True) -> Any:
        guards = asking()
        if guards is not None:
            for name in real(self, False):
                if guards.readable(self, name) is not self:
                    raise refusal(self, name)
        return real(self, deep)

    return get_params


def _storable(real: Any) -> Any:
    def set_params(self: Any, **params: Any) -> Any:
        guards = asking()
        if guards is not None and guards.classes.is_guest(type(self)):  # others name their own parameters
            check_keywords(params)
            for name in params:
                guards.check_storable(self, name)
                guards.check_store(self, name)
        return real(self, **params)

    return set_params


def _getter(real: Any) -> Any:
    def attrgetter(path: str) -> Any:
        guards = asking()
        if guards is None:
            return real(path)
        return functools.partial(functools.reduce, guards.getattr, str.__str__(path).split("."))

    return attrgetter


def _response(real: Any) -> Any:
    def check(estimator: Any, response_method: Any) -> Any:
        guards = asking()
        if guards is None:
            return real(estimator, response_method)
        names = (response_method,) if isinstance(response_method, str) else tuple(response_method)
        for name in names:
            found = guards.getattr(estimator, name, None)
            if found is not None:
                return found
        return real(estimator, names)  # it raises the real error

    return check


def _replace(files: bool) -> Replacements:
    tree: Any = import_module("sklearn.tree")

    validation: Any = import_module("sklearn.utils.validation")

    graph = Stream(position=1, keyword="out_file", optional=True, writes=True, files=files)
    sklearn: Any = import_module("sklearn")
    found = {
        "": {name: guarded(getattr(sklearn, name), _settings) for name in ("set_config", "config_context")},
        "tree": {
            "export_graphviz": guarded(tree.export_graphviz, graph),
            "plot_tree": guarded(tree.plot_tree, _plot_tree),
        },
    }
    if hasattr(validation, "validate_data"):  # since scikit-learn 1.6
        found["utils.validation"] = {"validate_data": guarded(validation.validate_data, of_own_estimator)}
    return found


LIBRARIES = {
    "sklearn": Library(
        name="sklearn",
        modules=_MODULES,
        # the first line: views of nodes and positions that compiled code follows without a check; the others:
        # data of a class, shared with host models
        denied=frozenset(
            {
                "BaseDecisionTree.tree_",
                "get_arrays",
                "idx_array",
                "node_data",
                "node_bounds",
                "loss_functions",
                "valid_metrics",
            }
        ),
        # a metric is given memory that is freed later
        guarded={"get_metric": copies_for_functions},
        copied=frozenset({"BaseLibSVM.support_", "BaseLibSVM.n_support_"}),
        trusted=frozenset(
            {
                *(
                    f"BaseLibSVM.{name}"
                    for name in ("support_", "support_vectors_", "n_support_", "shape_fit_")
                ),
                *(f"BaseDecisionTree.{name}" for name in ("tree_", "n_features_in_")),
                "BaseGradientBoosting.estimators_",
                "_BaseKMeans.cluster_centers_",
            }
        ),
        # a tree over these would be made without the check of the metric
        whole=frozenset({"BallTree64", "BallTree32", "DistanceMetric"}),
        sealed=tuple(f"sklearn.metrics._dist_metrics.PyFuncDistance{bits}" for bits in (32, 64)),
        brings=("matplotlib", "numpy", "scipy"),
        offers=("numpy", "scipy"),
        has_settings=True,
        preload=("joblib", "multiprocessing.dummy", "multiprocessing.pool", "scipy", "threadpoolctl"),
        prepare=_prepare,
        replace=_replace,
    ),
}
