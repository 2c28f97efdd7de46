"""Checks of models in scikit-learn, whose compiled code trusts their attributes."""

from __future__ import annotations

import functools
import numbers
from importlib import import_module
from typing import Any

from agex._interpreter.type_slots import module_of, mro_of
from agex.errors import SandboxTypeError
from agex.sandbox.classes.errors import described
from agex.sandbox.libraries.argument_checks import copies_for_functions
from agex.sandbox.libraries.numpy.read_only_arrays import keeping_read_only
from agex.sandbox.patches.replacement import replace
from agex.sandbox.runtime.context import asking

__all__ = ["of_own_estimator", "prepare_models"]


def prepare_models() -> None:
    """Check models that were changed after their fit, and pass copies of arrays to metrics."""
    replace(import_module("sklearn.neighbors").BallTree, "__init__", _with_copies)
    replace(import_module("sklearn.svm._base").BaseLibSVM, "_validate_for_predict", _with_vectors)
    replace(import_module("sklearn.manifold._t_sne"), "_kl_divergence_bh", _finite)
    replace(import_module("sklearn.feature_extraction._hash"), "_hashing_transform", _with_columns)
    for name in ("predict_stage", "predict_stages"):
        replace(import_module("sklearn.ensemble._gb"), name, _of_one_width)
    # these exchange columns in place by BLAS
    replace(import_module("sklearn.linear_model._least_angle"), "_lars_path_solver", keeping_read_only)
    for name in ("_cholesky_omp", "_gram_omp"):
        replace(import_module("sklearn.linear_model._omp"), name, keeping_read_only)


def of_own_estimator(real: Any, estimator: Any, *args: Any, **kwargs: Any) -> Any:
    """Refuse to set the columns of a model that is not pure guest code: compiled code relies on them."""
    guards = asking()
    parts = mro_of(type(estimator))
    homes = {module_of(part) for part in parts if guards is None or not guards.classes.is_guest(part)}
    if "sklearn.base" not in homes or not all(map(_has_no_model, homes)):
        raise SandboxTypeError(
            "validate_data() takes an estimator of your own, over BaseEstimator and mixins alone, not "
            f"{described(estimator)}; use check_array(X) or check_X_y(X, y)"
        )
    return real(estimator, *args, **kwargs)


def _has_no_model(home: str) -> bool:
    return home in {"builtins", "sklearn.base"} or home.startswith("sklearn.utils.")


def _with_copies(real: Any) -> Any:
    """Pass copies to a metric: the real arrays lie over the memory of the tree."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it stands for the one of the class
        if asking() is None:
            real(self, *args, **kwargs)
        else:
            copies_for_functions(functools.partial(real, self), *args, **kwargs)

    return __init__


def _with_vectors(real: Any) -> Any:
    """Refuse another kernel than the fitted one: a model fitted to a precomputed kernel has no vectors."""

    def _validate_for_predict(self: Any, X: Any) -> Any:  # noqa: N803 - its name there
        checked = real(self, X)
        is_given = callable(self.kernel) or self.kernel == "precomputed"
        if asking() is not None and not is_given and len(self.support_) != self.support_vectors_.shape[0]:
            raise ValueError("the kernel is not the one that the model was fitted with; call fit() again")
        return checked

    return _validate_for_predict


def _with_columns(real: Any) -> Any:
    """Refuse a table without columns: the hash is divided by their number."""

    def _hashing_transform(raw_X: Any, n_features: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N803
        if not isinstance(n_features, numbers.Integral) or n_features < 1:
            raise ValueError("n_features must be a positive integer")
        return real(raw_X, n_features, *args, **kwargs)

    return _hashing_transform


def _of_one_width(real: Any) -> Any:
    """Refuse trees that read columns which the table lacks: the array of trees can be changed."""

    def predict(estimators: Any, *args: Any) -> Any:
        columns = next(each.shape[1] for each in args if hasattr(each, "shape"))
        if asking() is not None and any(each.tree_.n_features != columns for each in estimators.flat):
            raise ValueError("the estimators are not those that were fitted; call fit() again")
        return real(estimators, *args)

    return predict


def _finite(real: Any) -> Any:
    """Refuse points that are not finite: they have no place in the tree."""

    def _kl_divergence_bh(params: Any, *args: Any, **kwargs: Any) -> Any:
        np: Any = import_module("numpy")

        with np.errstate(over="ignore"):
            if asking() is not None and not np.isfinite(params.astype(np.float32)).all():
                raise ValueError("the points are not finite any more; use a smaller learning_rate")
        return real(params, *args, **kwargs)

    return _kl_divergence_bh
