"""Policy of Pillow. It opens fonts in compiled code, and images by Python's own ``open``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.errors import SandboxError
from agex.sandbox.libraries.argument_checks import Stream, argument, guarded
from agex.sandbox.policy.library import Guard, Library, Replacements, less, only

__all__ = ["LIBRARIES"]

_MODULES = {
    "": only("UnidentifiedImageError"),
    "Image": only(
        "Image Exif Dither Palette Quantize Resampling Transform Transpose *Error *Warning",
        "ADAPTIVE AFFINE BICUBIC BILINEAR BOX EXTENT FLIP_* FLOYDSTEINBERG HAMMING LANCZOS MESH NEAREST",
        "PERSPECTIVE QUAD ROTATE_* TRANSPOSE TRANSVERSE WEB",
        "alpha_composite blend composite effect_* eval fromarray frombytes getmode* *_gradient merge new",
        "registered_extensions",
    ),
    "ImageChops": less(),
    "ImageColor": only("getrgb getcolor"),
    "ImageDraw": only("Draw ImageDraw Outline floodfill"),
    "ImageEnhance": only("Brightness Color Contrast Sharpness"),
    "ImageFilter": only(
        "*Filter *Blur UnsharpMask BLUR CONTOUR DETAIL EDGE* EMBOSS FIND_EDGES S* Kernel Color3DLUT"
    ),
    "ImageFont": only("FreeTypeFont ImageFont Layout TransposedFont load_default"),
    "ImageOps": only(
        "autocontrast colorize contain cover crop deform equalize exif_transpose expand fit flip grayscale",
        "invert mirror pad posterize scale solarize",
    ),
    "ImageSequence": less(),
    "ImageStat": only("Stat"),
}
"""Not listed: ImageGrab, ImageShow, ImageTk and ImageQt (the desktop), ImageCms and ImageMorph (open files),
ImageMath (evaluates text), ImageFile and the formats (whose settings are the process's), core."""

_DENIED = frozenset(
    """
    im getim show toqimage toqpixmap font font_variant fp tile
    """.split()
    # the objects of the compiled core; windows; fonts by another path; the open file of an image, and how it
    # is decoded
)

_SAVE = Stream(keyword="fp", writes=True, most=2)


def _raw(position: int, keyword: str) -> Guard:
    """Return the guard of a function that takes a codec by name: only raw ones do not write to open files."""

    def guard(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        codec = argument(position, keyword, args, kwargs)
        is_raw = type(codec) is str and codec == "raw"
        if not is_raw and (position < len(args) or keyword in kwargs):
            raise SandboxError(f"{real.__name__}() takes the codec 'raw' here; use save() and Image.open()")
        return real(*args, **kwargs)

    return guard


def _replace(files: bool) -> Replacements:
    image: Any = import_module("PIL.Image")
    fonts: Any = import_module("PIL.ImageFont")

    return {
        "Image": {
            "registered_extensions": lambda: dict(image.registered_extensions()),
            "frombytes": guarded(image.frombytes, _raw(3, "decoder_name")),
            "open": guarded(image.open, Stream(keyword="fp", in_memory=True, files=files)),
        },
        "ImageFont": {
            "truetype": guarded(fonts.truetype, Stream(keyword="font", in_memory=True, files=files)),
        },
    }


LIBRARIES = {
    "PIL": Library(
        name="PIL",
        modules=_MODULES,
        denied=_DENIED,
        guarded={
            "save": _SAVE,
            "Image.tobytes": _raw(0, "encoder_name"),
            "Image.frombytes": _raw(1, "decoder_name"),
        },
        writable=frozenset({"Exif"}),
        # compiled code opens them from a path
        sealed=("PIL.ImageFont.FreeTypeFont", "PIL.ImageFont.ImageFont"),
        brings=("numpy",),
        preload=(
            "PIL.BmpImagePlugin",
            "PIL.GifImagePlugin",
            "PIL.JpegImagePlugin",
            "PIL.PngImagePlugin",
            "PIL.PpmImagePlugin",
            "PIL.TiffImagePlugin",
            "PIL.WebPImagePlugin",
        ),
        replace=_replace,
    )
}
