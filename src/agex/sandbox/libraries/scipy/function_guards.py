"""Guards of scipy functions whose compiled code trusts its arguments."""

# ruff: noqa: A001, A002, N803, N806 - the names of arguments are scipy's
from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.errors import SandboxTypeError
from agex.sandbox.policy.library import Guard

__all__ = [
    "factorized", "grey_morphology", "metric_of_rank", "numbers", "predecessors",
    "spline",
]  # fmt: skip


def numbers(real: Callable[..., Any], X: Any, *args: Any, **kwargs: Any) -> Any:
    """Check that an array holds no references: they would be copied without being counted."""
    np: Any = import_module("numpy")

    X = np.array(X)
    if X.dtype.hasobject:
        raise SandboxTypeError(
            f"{real.__name__}() takes an array of numbers here; convert it with a.astype()"
        )
    return real(X, *args, **kwargs)


def metric_of_rank(
    real: Callable[..., Any], input: Any, metric: Any = "chessboard", *args: Any, **kwargs: Any
) -> Any:
    """Check that a structure has as many dimensions as the array over which it is laid."""
    np: Any = import_module("numpy")

    input = np.asarray(input)
    if type(metric) is not str:
        metric = np.array(metric, "i8")
        if metric.ndim != input.ndim:
            raise ValueError("the metric must have as many dimensions as the input")
    return real(input, metric, *args, **kwargs)


def grey_morphology(
    real: Callable[..., Any],
    input: Any,
    size: Any = None,
    footprint: Any = None,
    structure: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Check that a structure has a value for each place of a non-empty footprint."""
    np: Any = import_module("numpy")

    if structure is not None:
        structure = np.array(structure, float)
        if footprint is not None:
            footprint = np.array(footprint, bool)
            if footprint.shape != structure.shape:
                raise ValueError("footprint and structure must have the same shape")
            if not footprint.any():
                raise ValueError("all-zero footprint is not supported")
    return real(input, size, footprint, structure, *args, **kwargs)


def predecessors(rank: int) -> Guard:
    """Return the guard of a function that follows predecessors, which must be nodes of the graph."""

    def guard(real: Callable[..., Any], csgraph: Any, predecessors: Any, *args: Any, **kwargs: Any) -> Any:
        np: Any = import_module("numpy")

        found = np.array(predecessors, "i4")
        nodes = np.shape(csgraph)[0] if np.shape(csgraph) else 0
        if found.shape != (nodes,) * rank or (found >= nodes).any():
            raise ValueError(f"predecessors must be nodes of the graph, in an array of {rank} dimensions")
        return real(csgraph, found, *args, **kwargs)

    return guard


_MOST_DEGREES = 5  # FITPACK: 1 <= k <= 5


def spline(position: int) -> Guard:
    """Return the guard of a function that takes a spline as (knots, coefficients, degree)."""

    def guard(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        settled = list(args)
        if len(settled) > position:
            settled[position] = _sound(settled[position])
        elif "tck" in kwargs:
            kwargs["tck"] = _sound(kwargs["tck"])
        return real(*settled, **kwargs)

    return guard


def _sound(tck: Any) -> Any:
    np: Any = import_module("numpy")

    if type(tck) is import_module("scipy.interpolate").BSpline:
        return tck
    knots, coefficients, degree = tck
    knots, coefficients, degree = (
        np.array(knots, float),
        np.array(coefficients, float),
        operator.index(degree),
    )
    needed = len(knots) - degree - 1
    if knots.ndim != 1 or not 0 <= degree <= _MOST_DEGREES or not degree < needed <= coefficients.shape[-1]:
        raise ValueError("a spline of degree k up to 5 has n knots, and n - k - 1 > k coefficients")
    return knots, coefficients if coefficients.ndim == 1 else list(coefficients), degree


def factorized(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return a factorization that protects its permutations, which compiled code follows."""
    return SuperLU(real(*args, **kwargs))


class SuperLU:
    """A factorization of a sparse matrix; the permutations are copies."""

    def __init__(self, made: Any) -> None:
        self._made = made

    L = property(lambda self: self._made.L)
    U = property(lambda self: self._made.U)
    nnz = property(lambda self: self._made.nnz)
    shape = property(lambda self: self._made.shape)
    perm_c = property(lambda self: self._made.perm_c.copy())
    perm_r = property(lambda self: self._made.perm_r.copy())

    def solve(self, rhs: Any, trans: Any = "N") -> Any:
        """Solve the linear system for right hand sides."""
        return self._made.solve(rhs, trans)


SuperLU.__module__ = "scipy.sparse.linalg"
