"""Arrays that all objects of matplotlib share in the process, made immutable.

Markers, hatches, the unit circle and the identity are single arrays, which methods hand out. A read-only
array can be made writable again by its holder. One over plain bytes cannot.
"""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

from agex.sandbox.patches.library_caches import hold_of_class
from agex.sandbox.patches.replacement import is_stand_in, replace
from agex.sandbox.patches.stdlib_caches import exact
from agex.sandbox.runtime.provenance import is_guest_class

__all__ = ["lock", "own_colors"]


def lock() -> None:
    """Make the existing shared arrays immutable, and those made later."""
    path: Any = import_module("matplotlib.path").Path
    if is_stand_in(path.hatch):
        return
    _lock_paths(path)
    transforms: Any = import_module("matplotlib.transforms")
    transforms.IdentityTransform._mtx = _locked(transforms.IdentityTransform._mtx)
    formatter: Any = import_module("matplotlib.ticker").Formatter
    for name in ("_locs", "locs"):  # since matplotlib 3.11, and before
        if type(vars(formatter).get(name)) is list:
            setattr(formatter, name, ())
    _lock_colors()


# -- paths


def _lock_paths(path: Any) -> None:
    replace(path, "__init__", _locking)
    shared = [path.unit_rectangle(), path.unit_circle(), path.unit_circle_righthalf()]
    shared += [*path._unit_regular_polygons.values(), *path._unit_regular_stars.values()]
    for module, name in (("markers", "MarkerStyle"), ("patches", "Arrow")):
        class_ = getattr(import_module(f"matplotlib.{module}"), name)
        shared += [each for each in vars(class_).values() if isinstance(each, path)]
    for each in shared:
        _lock_path(each)
    replace(path, "hatch", _of_pattern)
    path.hatch = staticmethod(path.hatch)
    hold_of_class(path, "unit_regular_polygon", "unit_regular_star")


def _locking(real: Any) -> Any:
    """Make a `Path` constructed with ``readonly=True`` truly immutable."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it stands for the one of the class
        real(self, *args, **kwargs)
        if self._readonly:
            _lock_path(self)

    return __init__


def _of_pattern(real: Any) -> Any:
    """Make the paths of hatches immutable, and their cache keys exact."""

    def hatch(hatchpattern: Any, density: Any = 6) -> Any:
        found = real(exact(hatchpattern), exact(density))
        if found is not None:
            _lock_path(found)
        return found

    return hatch


def _lock_path(path: Any) -> None:
    path._vertices = _locked(path._vertices)
    if path._codes is not None:
        path._codes = _locked(path._codes)


def _locked(array: Any) -> Any:
    np: Any = import_module("numpy")

    if array.size == 0 or type(array.base) is bytes or type(getattr(array.base, "base", None)) is bytes:
        return array
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


# -- colors


def own_colors(colormap: Any) -> Any:
    """Return the colormap with colors of its own."""
    if type(getattr(colormap, "colors", None)) is not tuple and hasattr(colormap, "colors"):
        colormap.colors = _copied(colormap.colors)
    return colormap


def _copied(colors: Any) -> Any:
    """Return a copy of colors. Most are 256 lists of numbers, for which `deepcopy` is slow."""
    if type(colors) is not list:
        return copy.deepcopy(colors)
    kept = (str, tuple)
    return [
        row[:] if type(row) is list else row if type(row) in kept else copy.deepcopy(row) for row in colors
    ]


class _Colors(dict[Any, Any]):
    """A cache of colors without guest keys, which could define ``__eq__``."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(_plain(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_plain(key), value)


def _plain(key: Any) -> Any:
    """Return a key of plain values; raise TypeError, as for unhashable keys, which are not cached."""
    if type(key) is tuple:
        return tuple(map(_plain, key))
    key = exact(key)
    if is_guest_class(type(key)):
        raise TypeError(f"{type(key).__name__} is not remembered")
    return key


def _lock_colors() -> None:
    colors: Any = import_module("matplotlib.colors")

    colors._colors_full_map.cache = _Colors()
    replace(colors.Colormap, "__copy__", _with_own_colors)


def _with_own_colors(real: Any) -> Any:
    def __copy__(self: Any) -> Any:  # noqa: N807 - it stands for the one of the class
        return own_colors(real(self))

    return __copy__
