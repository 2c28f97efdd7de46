"""Pictures and figures as the encoded images that a model is shown.

A picture is drawn where the agent's code runs, under its limits and behind its audit hook: a figure
may hold guest functions. Only a plotly figure, which another program draws, goes
there as plain JSON.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from agex._interpreter.type_slots import mro_of
from agex.models.base import Image
from agex.sandbox.runtime import provenance as origins
from agex.values.base.type_checks import is_exactly, is_made_of

__all__ = ["MOST_PICTURES", "encoded", "media_type_of", "pictures_of"]

MOST_PICTURES = 8
"""Shown after one action, or with the inputs of a task."""
LONGEST_SIDE = 1568
"""Pixels; providers scale larger pictures down themselves and charge for them before."""
MOST_BYTES = 5 * 1024 * 1024
"""Of one encoded picture: the least that a large provider takes."""
DPI = 100
"""Of a matplotlib figure, as its own default on screen."""

_MAGIC = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}

HostTime = Callable[[], AbstractContextManager[object]]
"""Opens a stretch of host time, outside the limits and the audit hook of guest code."""


def encoded(thing: Any, host_time: HostTime) -> Image:
    """Return a picture as a model is shown it.

    Args:
        thing: an encoded PNG, JPEG, GIF or WebP; a PIL image; a matplotlib figure or axes; a plotly
            figure; an array of 8-bit pixels, (height, width) or (height, width, 3 or 4).
        host_time: how to do what the agent's code may not.

    Raises:
        TypeError: it is none of these.
        ValueError: it is too large, or of no known format.
        RuntimeError: the library that draws it is not there.
    """
    kind = type(thing)
    if issubclass(kind, bytes | bytearray | memoryview):
        return _checked(bytes(memoryview(thing)))  # bytes() would give what a guest class says
    for module, name, draw in _DRAWN:
        if is_made_of(kind, module, name):
            return draw(thing, host_time)
    raise TypeError(
        f"view_image() shows PNG or JPEG bytes, PIL images, matplotlib and plotly figures and arrays of "
        f"8-bit pixels, not {kind.__name__}; draw it first, or print it."
    )


def pictures_of(values: Mapping[str, Any], host_time: HostTime) -> tuple[list[str], tuple[Image, ...]]:
    """Return which of some inputs are pictures by their type, and those pictures, the first few of them.

    An instance of a guest class is left out: its methods are guest code, which must not run here.
    """
    given = [
        name
        for name, value in values.items()
        if is_made_of(type(value), "PIL.Image", "Image")
        if not any(map(origins.is_guest_class, mro_of(type(value))))
    ]
    shown = {name: _pil(values[name], host_time) for name in given[:MOST_PICTURES]}
    return [*shown], tuple(shown.values())


def media_type_of(data: bytes) -> str | None:
    """Return the MIME type of an encoded picture by how it begins; None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)


def _checked(data: bytes) -> Image:
    kind = media_type_of(data)
    if kind is None:
        raise ValueError("These bytes are no PNG, JPEG, GIF or WebP; for pixels give an array.")
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"The picture has {len(data):,} bytes; at most {MOST_BYTES:,} can be shown. Scale it down."
        )
    return Image(data=data, media_type=kind)


def _pil(picture: Any, host_time: HostTime) -> Image:
    with host_time():
        from PIL import Image as pil  # noqa: N813 - the plugin writes
    small = picture.copy()
    small.info = {name: each for name, each in small.info.items() if type(name) is str and _is_plain(each)}
    small.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    if small.mode not in {"1", "L", "LA", "P", "RGB", "RGBA", "I;16"}:
        small = pil.Image.convert(small, "RGB")
    out = io.BytesIO()
    small.save(out, "PNG")
    return _checked(out.getvalue())


def _is_plain(value: Any) -> bool:
    """Return whether a value beside the pixels is plain data; Pillow would call a guest object there."""
    parts = value if type(value) is tuple else (value,)
    return all(type(part) in {int, float, bytes, str} for part in parts)


def _array(pixels: Any, host_time: HostTime) -> Image:
    with host_time():
        try:
            from PIL import Image as pil  # noqa: N813
        except ModuleNotFoundError as error:
            raise RuntimeError("Arrays are shown by Pillow, which is not installed here.") from error
    if not is_exactly(type(pixels), "numpy", "ndarray"):  # a subclass says itself where its pixels are
        raise TypeError("view_image() shows plain arrays; write numpy.array(x).")
    if str(pixels.dtype) != "uint8" or pixels.ndim not in {2, 3}:
        raise TypeError(
            f"view_image() shows arrays of uint8, (height, width) or (height, width, 3 or 4), "
            f"not {pixels.dtype} of shape {pixels.shape}; scale the values to 0..255 first."
        )
    return _pil(pil.fromarray(pixels), host_time)


def _figure(figure: Any, _host_time: HostTime) -> Image:
    out = io.BytesIO()
    inches = max(figure.get_size_inches())
    figure.savefig(out, format="png", dpi=min(DPI, LONGEST_SIDE / inches))
    return _checked(out.getvalue())


def _axes(axes: Any, host_time: HostTime) -> Image:
    return _figure(axes.get_figure(), host_time)


def _plotly(figure: Any, host_time: HostTime) -> Image:
    plain = json.loads(figure.to_json())
    with host_time():
        from plotly import io as plotly_io

        try:
            data = plotly_io.to_image(plain, format="png", width=900, height=600)
        except (ValueError, RuntimeError, OSError) as error:
            raise RuntimeError(
                "A plotly figure is drawn by kaleido and a Chrome browser, which do not both work here: "
                f"{str(error).strip().splitlines()[0]} Print the numbers instead, or draw it with matplotlib."
            ) from error
    return _checked(data)


_DRAWN: tuple[tuple[str, str, Callable[[Any, HostTime], Image]], ...] = (
    ("PIL.Image", "Image", _pil),
    ("numpy", "ndarray", _array),
    ("matplotlib.figure", "Figure", _figure),
    ("matplotlib.axes", "Axes", _axes),
    ("plotly.basedatatypes", "BaseFigure", _plotly),
)
"""The drawing function of each class."""
