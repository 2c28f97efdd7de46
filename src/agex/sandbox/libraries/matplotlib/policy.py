"""Policy of matplotlib."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.errors import SandboxError
from agex.sandbox.classes.errors import check_keywords
from agex.sandbox.libraries.argument_checks import Stream, guarded
from agex.sandbox.libraries.matplotlib.animations import hold_folders
from agex.sandbox.libraries.matplotlib.artists import prepare_artists
from agex.sandbox.libraries.matplotlib.figures import close, note_figures
from agex.sandbox.libraries.matplotlib.settings import pyplot_members, settings_members, style_members
from agex.sandbox.libraries.matplotlib.shared_arrays import lock
from agex.sandbox.patches import library_caches
from agex.sandbox.patches.library_caches import hold_zones
from agex.sandbox.patches.replacement import replace
from agex.sandbox.policy.library import Guard, Library, Replacements, less, only
from agex.sandbox.runtime import audit_hook
from agex.sandbox.runtime.context import asking
from agex.sandbox.stdlib.string_format import is_plain_format, read_public, safe_format

__all__ = ["LIBRARIES"]

_FORMATS = frozenset({"png", "svg", "pdf", "jpg", "jpeg", "webp", "raw", "rgba", "ps", "eps"})
"""Formats that are drawn in this process; ``pgf`` runs TeX."""

_PYPLOT = less(
    # settings of the process that are not put back, or name other programs
    "rcParamsDefault rcParamsOrig rcsetup xkcd backend_registry set_loglevel",
    "install_repl_displayhook uninstall_repl_displayhook interactive",
    "requested_backend color_sequences",
    # call get_x by a name in a string
    "getp get",
    # windows, event loops
    "pause ginput waitforbuttonpress connect disconnect subplot_tool new_figure_manager",
    "get_current_fig_manager",
    "draw_all draw_if_interactive FigureManagerBase FigureCanvasBase Button Slider Widget BackendFilter",
)

_MODULES = {
    "": only("colormaps rcParams rcParamsDefault rc rc_context rcdefaults get_backend style"),
    "animation": only("Animation ArtistAnimation FuncAnimation HTMLWriter PillowWriter TimedAnimation"),
    "axes": only("Axes"),
    "backends": only(),
    "backends.backend_agg": only("FigureCanvas FigureCanvasAgg"),
    "cm": only("ScalarMappable"),
    "collections": only("LineCollection PatchCollection PathCollection PolyCollection"),
    "colors": less(
        "make_norm_from_scale ColorConverter colorConverter"
    ),  # the converter's table is the process's
    "dates": less("set_epoch rcParams"),  # the epoch is the process's
    "font_manager": only("FontProperties"),
    "figure": only("Figure SubFigure figaspect"),
    "gridspec": only("GridSpec GridSpecFromSubplotSpec SubplotSpec"),
    "lines": only("Line2D"),
    "markers": only("MarkerStyle"),
    "offsetbox": only("AnchoredText AnnotationBbox OffsetImage TextArea"),
    "patches": less(),
    "path": only("Path"),
    "patheffects": only("Normal SimpleLineShadow SimplePatchShadow Stroke withSimplePatchShadow withStroke"),
    "pyplot": _PYPLOT,
    "style": only("use context available library"),
    "text": only("Annotation Text"),
    "ticker": less(),
    "transforms": only("Affine2D Bbox blended_transform_factory offset_copy"),
}
"""Not listed: other backends; image (writes files); texmanager, dviread (other programs); testing."""

_DENIED = frozenset(
    """
    print_avif print_eps print_figure print_gif print_jpeg print_jpg print_pdf print_pgf print_png print_ps
    print_raw print_rgba print_svg print_svgz print_tif print_tiff print_webp write_png
    manager manager_class new_manager new_timer set_canvas show ginput start_event_loop
    set_usetex mathtext_parser
    FT2Font.clear FT2Font.select_charmap FT2Font.set_charmap FT2Font.set_size FT2Font.set_text
    FT2Font.load_char FT2Font.load_glyph
    ColormapRegistry.register ColormapRegistry.unregister
    Line2D.lineStyles Line2D.drawStyles Line2D.drawStyleKeys Line2D.markers DateLocator.hms0d
    MaxNLocator.default_params EngFormatter.ENG_PREFIXES Path.NUM_VERTICES_FOR_CODE
    FigureCanvasBase.events FigureCanvasBase.filetypes BboxBase.coefs AsinhScale.auto_tick_multipliers
    AnchoredOffsetbox.codes Legend.codes Table.codes MarkerStyle.markers
    QuiverKey.halign QuiverKey.valign QuiverKey.pivot
    Legend.set_default_handler_map Legend.update_default_handler_map
    RendererAgg.draw_gouraud_triangles RendererAgg.draw_image RendererAgg.draw_markers
    RendererAgg.draw_path_collection RendererAgg.draw_quad_mesh copy_from_bbox restore_region
    """.split()
    # write files; windows and their loops; run TeX; remember formulas, and the fonts that
    # all text of the process is drawn with; change the colormaps of the process,
    # or the tables that its own lines and axes use, or the drawing of entries in all legends;
    # the last two lines: C++ that trusts sizes
)


_SAVEFIG = Stream(keyword="fname", writes=True, without=("backend",), choices={"format": _FORMATS})


def _copied(real: Callable[..., Any], *args: Any) -> dict[str, Any]:
    """Return a copy of a table that the class shares with host objects."""
    return dict(real(*args))


_GUARDED: dict[str, Guard] = {
    "savefig": _SAVEFIG,
    "get_styles": _copied,
    "get_supported_filetypes": _copied,
    "Legend.get_default_handler_map": _copied,
    "Legend.get_legend_handler_map": _copied,
}


def _show(*args: Any, **kwargs: Any) -> None:
    """Do nothing: there is no window here, as under matplotlib's Agg."""


def _use(backend: Any, **kwargs: Any) -> None:
    """Accept the backend that draws into memory, as all figures do here."""
    if type(backend) is not str or backend.lower() != "agg":
        raise SandboxError("the backend belongs to the host; figures are drawn in memory")


def _replace(files: bool) -> Replacements:
    plt: Any = import_module("matplotlib.pyplot")

    colors: Any = import_module("matplotlib.colors")
    return {
        "style": style_members(),
        "": {"use": _use, **settings_members()},
        "cm": _colormaps(),
        "colors": {"get_named_colors_mapping": lambda: dict(colors.get_named_colors_mapping())},
        "pyplot": {
            "savefig": guarded(plt.savefig, _SAVEFIG.opened() if files else _SAVEFIG),
            "close": guarded(plt.close, close),
            "show": _show,
            "switch_backend": _use,
            "imread": guarded(plt.imread, Stream(keyword="fname", files=files)),
            "imsave": guarded(plt.imsave, Stream(keyword="fname", writes=True, files=files)),
            **pyplot_members(),
        },
    }


def _colormaps() -> dict[str, Any]:
    """Return copies of the colormaps by their names, with colors of their own: see `own_colors`."""
    plt: Any = import_module("matplotlib.pyplot")

    return {name: plt.get_cmap(name) for name in plt.colormaps() if name.isidentifier()}


def _prepare() -> None:
    _prepare_formatter()
    _prepare_labels()
    _prepare_effects()
    prepare_artists()
    note_figures()
    hold_folders()
    hold_zones()
    lock()
    replace(import_module("matplotlib.backend_bases"), "get_registered_canvas_class", _loaded)


def _loaded(real: Any) -> Any:
    """Load the module of a format as the host. That of PDF takes longer than the rest of a first task."""
    backend_bases: Any = import_module("matplotlib.backend_bases")

    def get_registered_canvas_class(format: Any) -> Any:  # noqa: A002 - matplotlib's name
        # A text of guest code's own class would be compared, so its methods would run as the host.
        if asking() is None or type(format) is not str:
            return real(format)
        if not isinstance(backend_bases._default_backends.get(format), str):
            return real(format)
        found = audit_hook.call_as_host(real, format)
        library_caches.hold_memoized(("fontTools", "matplotlib"))
        return found

    return get_registered_canvas_class


def _prepare_labels() -> None:
    """Read attributes in labels made by a format string as guest code may."""
    replace(import_module("matplotlib.cbook"), "_auto_format_str", _label)


def _label(real: Any) -> Any:
    def label(fmt: Any, value: Any) -> str:
        guards = None if is_plain_format(fmt) else asking()
        if guards is None:
            return str(real(fmt, value))
        try:
            return str(fmt % (value,))
        except (TypeError, ValueError):
            return safe_format(guards.getattr, fmt, value)

    return label


def _prepare_effects() -> None:
    """Check setters that a keyword of an effect names as if guest code read them."""
    effect: Any = import_module("matplotlib.patheffects").AbstractPathEffect
    replace(effect, "_update_gc", _set)


def _set(real: Any) -> Any:
    def update(self: Any, gc: Any, new_gc_dict: dict[str, Any]) -> Any:
        guards = asking()
        if guards is None:
            return real(self, gc, new_gc_dict)
        named = dict.copy(new_gc_dict)
        check_keywords(named)
        for name in named:
            guards.getattr(gc, f"set_{name}", None)
        return real(self, gc, named)

    return update


def _prepare_formatter() -> None:
    """Read attributes in the formatter of format strings as guest code may.

    matplotlib makes it in many places of any string that stands for a formatter, and objects lead to it.
    """
    formatter: Any = import_module("matplotlib.ticker").StrMethodFormatter
    replace(formatter, "__call__", functools.partial(_formatting, formatter))


def _formatting(formatter: Any, real: Any) -> Any:
    def call(self: Any, x: Any, pos: Any = None) -> str:
        if type(self) is formatter and is_plain_format(self.fmt):
            return str(real(self, x, pos))
        guards = asking()  # where the host calls it after the run, it may be one that guest code made
        return safe_format(read_public if guards is None else guards.getattr, self.fmt, x=x, pos=pos)

    return call


LIBRARIES = {
    "matplotlib": Library(
        name="matplotlib",
        modules=_MODULES,
        denied=_DENIED,
        guarded=_GUARDED,
        writable=frozenset({"Axis", "Figure"}),  # fig.dpi, ax.xaxis.labelpad
        brings=("mpl_toolkits", "numpy"),
        offers=("cycler", "mpl_toolkits", "numpy"),
        entrances=("pyplot",),
        has_settings=True,
        preload=(
            "matplotlib.animation",
            "matplotlib.backends.backend_agg",
            "matplotlib.backends.backend_svg",
            "PIL",
            "fontTools",
            "mpl_toolkits.mplot3d",
            "uuid",
        ),
        own={"cm": _colormaps},
        prepare=_prepare,
        replace=_replace,
    ),
    "cycler": Library(name="cycler", modules={"": only("Cycler concat cycler")}),
    "mpl_toolkits": Library(
        name="mpl_toolkits",
        modules={
            "": only(),
            "axes_grid1": only("make_axes_locatable"),
            "mplot3d": only("Axes3D"),
            "mplot3d.art3d": only("Line3DCollection Poly3DCollection"),
        },
        denied=_DENIED,
        guarded=_GUARDED,
    ),
}
