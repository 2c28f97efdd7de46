"""matplotlib under its policy: figures are drawn into memory; files, windows and settings are refused.

Stopped by: sandbox.libraries.matplotlib.
"""

import copy
import subprocess
import sys

import pytest

from agex import connect_fs
from agex.errors import SandboxAttributeError
from agex.sandbox import Policy, Sandbox

START = """
import io
import numpy as np
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(3, 2))
"""

EVERYDAY = {
    "smooth edges": "ax.scatter([0], [0], antialiased=[True]).set_antialiased(aa=False); ax.imshow(np.eye(3), filterrad=3); fig.savefig(io.BytesIO()); print(ax.text(0, 0, 'a').get_window_extent(renderer=fig.canvas.get_renderer()).height > 0)",
    "Axes3D": "from mpl_toolkits.mplot3d import Axes3D; print(type(plt.figure().add_subplot(projection='3d')) is Axes3D)",
    "cycler": "from cycler import cycler; c = cycler(color='rg'); plt.figure().add_subplot().set_prop_cycle(c); print(list(c))",
    "line": "ax.plot([1, 2, 3], [1, 4, 9], 'r--', label='q'); ax.set_xlabel('x'); ax.set_title('t'); ax.legend(); ax.grid(True); print(ax.get_title(), len(ax.lines), ax.get_xlim())",
    "bytes": "ax.bar(['a', 'b'], [1, 2]); b = io.BytesIO(); fig.savefig(b, format='png', dpi=50); print(b.getvalue()[:4], len(b.getvalue()))",
    "pyplot savefig": "plt.plot([1, 2]); b = io.BytesIO(); plt.savefig(b); print(b.getvalue()[:4])",
    "svg as text": "b = io.StringIO(); fig.savefig(b, format='svg'); print(b.getvalue()[:5])",
    "pdf": "b = io.BytesIO(); fig.savefig(b, format='pdf'); print(b.getvalue()[:4])",
    "pyplot": "plt.figure(); plt.hist([1, 2, 2], bins=2); plt.scatter([1], [2], c=[3], cmap='viridis'); plt.xlabel('a'); plt.title('z'); plt.tight_layout(); print(plt.gca().get_title())",
    "grid of axes": "f, axes = plt.subplots(2, 2, sharex=True); axes[0, 1].imshow(np.eye(3)); print(axes.shape, len(f.axes)); plt.close(f)",
    "colors": "print(plt.cm.viridis(0.5), plt.get_cmap('tab10')(1), matplotlib.colormaps['plasma'](0.1))",
    "parts": "from matplotlib.patches import Rectangle; from matplotlib.ticker import MaxNLocator; from matplotlib.colors import LinearSegmentedColormap, to_hex; ax.add_patch(Rectangle((0, 0), 1, 1)); ax.xaxis.set_major_locator(MaxNLocator(3)); print(to_hex('red'), len(ax.patches))",
    "object style": "from matplotlib.figure import Figure; f = Figure(); a = f.subplots(); a.plot([1, 2]); b = io.BytesIO(); f.savefig(b, format='png'); print(len(a.lines))",
    "a canvas of one's own": "from matplotlib.backends.backend_agg import FigureCanvasAgg; from matplotlib.figure import Figure; f = Figure((2, 1), dpi=50); c = FigureCanvasAgg(f); f.add_subplot().plot([1, 2]); c.draw(); print(np.asarray(c.buffer_rgba()).sum(), c.get_width_height())",
    "collections": "from matplotlib.collections import LineCollection, PatchCollection; from matplotlib.patches import PathPatch, Polygon; from matplotlib.path import Path; l = LineCollection([[(0, 0), (1, 1)], [(1, 1), (2, 0)]], linewidths=2); l.set_array([1, 2]); ax.add_collection(l); ax.add_collection(PatchCollection([Polygon([(0, 0), (1, 0), (0, 1)])])); ax.add_patch(PathPatch(Path([(0, 0), (1, 1), (2, 0)], [Path.MOVETO, Path.CURVE3, Path.CURVE3]))); b = io.BytesIO(); fig.savefig(b, format='rgba'); print(sum(b.getvalue()))",
    "outlines": "import matplotlib.patheffects as pe; ax.text(0, 0, 'a', path_effects=[pe.withStroke(linewidth=3, foreground='w')]); ax.plot([1, 2], path_effects=[pe.SimpleLineShadow(), pe.Normal()]); b = io.BytesIO(); fig.savefig(b, format='rgba'); print(sum(b.getvalue()))",
    "places": "import matplotlib.transforms as t; from matplotlib.axes import Axes; from matplotlib.offsetbox import AnchoredText; from matplotlib.text import Text; from mpl_toolkits.axes_grid1 import make_axes_locatable; x = ax.text(1, .9, 'b', transform=t.blended_transform_factory(ax.transData, ax.transAxes)); ax.plot([1, 2], transform=t.Affine2D().rotate_deg(10) + ax.transData); ax.add_artist(AnchoredText('n', loc='upper left')); c = make_axes_locatable(ax).append_axes('right', size='5%', pad=.05); fig.colorbar(ax.imshow(np.eye(2)), cax=c); b = io.BytesIO(); fig.savefig(b, format='rgba'); print(sum(b.getvalue()), isinstance(ax, Axes), isinstance(x, Text))",
    "faces": "from mpl_toolkits.mplot3d.art3d import Poly3DCollection; f = plt.figure(figsize=(2, 2)); f.add_subplot(projection='3d').add_collection3d(Poly3DCollection([[(0, 0, 0), (1, 0, 0), (0, 1, 1)]])); b = io.BytesIO(); f.savefig(b, format='rgba'); print(sum(b.getvalue()))",
    "closed figures": "a = plt.gcf().number; plt.figure(); b = plt.figure('named').number; plt.close(a); plt.close(99); print(len(plt.get_fignums()), plt.fignum_exists(a), plt.fignum_exists(b)); plt.close('all'); print(plt.get_fignums())",
    "pixels": "fig.canvas.draw(); print(np.asarray(fig.canvas.buffer_rgba()).shape)",
    "labels of bars": "b = ax.bar(['a', 'b'], [1, 2.5]); print([t.get_text() for f in ('%.1f', '{:.2f} m', '{0.real}', 'x') for t in ax.bar_label(b, fmt=f)])",
    "more colors": "print(plt.cm.Spectral(0.5), plt.cm.rainbow(0.1), matplotlib.cm.tab20c(3))",
    "shapes": "from matplotlib.patches import Arrow, Circle, RegularPolygon; [ax.add_patch(p) for p in (Circle((0, 0), 1, hatch='/'), RegularPolygon((0, 0), 5), Arrow(0, 0, 1, 1))]; ax.scatter([1, 2], [1, 2], marker='^'); ax.plot([1], 's'); b = io.BytesIO(); fig.savefig(b, format='rgba'); print(hash(b.getvalue()), ax.patches[0].get_path().vertices.max())",
    "a map of its own": "from matplotlib.colors import ListedColormap; c = plt.get_cmap('viridis').with_extremes(bad='red'); print(c(np.nan), c.colors[0], c.reversed().colors[0], ListedColormap(['red', 'blue'])(1))",
    "named colors": "import matplotlib.colors as c; print(c.get_named_colors_mapping()['red'], c.to_rgba('red', 0.5), c.to_rgba((0.1, 0.2, 0.3)), c.to_hex('C1'))",
    "version": "print(matplotlib.__version__)",
    "attributes are written": "fig.dpi = 50; ax.xaxis.labelpad = 9; print(fig.get_dpi(), ax.xaxis.labelpad)",
    "annotations": "ax.annotate('p', (1, 1)); ax.text(0, 0, '$x^2$'); ax.axhline(1); ax.fill_between([1, 2], [1, 2]); ax.twinx(); fig.suptitle('s'); fig.savefig(io.BytesIO()); print(len(ax.texts))",
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_figures():
    plt = pytest.importorskip(
        "matplotlib.pyplot", reason="matplotlib is not installed: its policy cannot be tried"
    )
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_matplotlib_prints_what_it_prints_natively(room, native, name):
    source = START + EVERYDAY[name]

    assert room("matplotlib", "numpy").printed(source) == native(source)


HOSTILE = {
    "no edges to be drawn smoothly": "ax.scatter([0], [0]).set(antialiased=[]); fig.savefig(io.BytesIO())",
    "a filter of any size": "ax.imshow(np.eye(3), interpolation='lanczos', filterrad=1e9); fig.savefig(io.BytesIO())",
    "a filter of no size": "ax.imshow(np.eye(3), interpolation='lanczos').set_filterrad(filterrad=np.nan); fig.savefig(io.BytesIO())",
    "a region beyond the picture": "fig.canvas.copy_from_bbox(type(ax.bbox.frozen()).from_extents(-1e9, -1e9, 1e9, 1e9))",
    "a mesh beyond its points": "r = fig.canvas.get_renderer(); r.draw_quad_mesh(r.new_gc(), ax.transData, 10**4, 10**4, np.zeros((2, 2, 2)), np.zeros((1, 2)), ax.transData, np.zeros((1, 4)), True, np.zeros((1, 4)))",
    "savefig": "fig.savefig(TARGET)",
    "pyplot savefig": "plt.savefig(TARGET)",
    "savefig by keyword": "fig.savefig(fname=TARGET)",
    "savefig off the class": "plt.Figure.savefig(fig, TARGET)",
    "savefig to a path-like": "class B(io.BytesIO):\n    def __fspath__(self): return TARGET\nfig.savefig(B())",
    "savefig by TeX": "fig.savefig(io.BytesIO(), format='pgf')",
    "savefig by a backend": "fig.savefig(io.BytesIO(), backend='module://this')",
    "savefig through super": "class F(plt.Figure):\n    def go(self): super().savefig(TARGET)\nF().go()",
    "print_figure": "fig.canvas.print_figure(TARGET)",
    "a writer beside the canvas": "from matplotlib.backends.backend_agg import FigureCanvasAgg; FigureCanvasAgg(fig).print_png(TARGET)",
    "another writer": "from matplotlib.backends.backend_pdf import PdfPages; PdfPages(TARGET)",
    "the settings beside a canvas": "import matplotlib.backends.backend_agg as b; b.mpl.rcParams",
    "a renderer that stands before another": "from matplotlib.patheffects import PathEffectRenderer",
    "print_png": "fig.canvas.print_png(TARGET)",
    "write_png": "ax.imshow(np.eye(2)).write_png(TARGET)",
    "imsave": "plt.imsave(TARGET, np.eye(2))",
    "imread": "plt.imread(SECRET)",
    "TeX by rcParams": "plt.rcParams['text.usetex'] = True",
    "TeX by rc": "plt.rc('text', usetex=True)",
    "TeX by a style": "plt.style.use({'text.usetex': True})",
    "TeX in a context": "plt.rc_context({'text.usetex': True}).__enter__()",
    "a backend by update": "plt.rcParams.update(backend='module://this')",
    "a backend by a style": "plt.style.use({'backend': 'svg'})",
    "a folder": "plt.rcParams['savefig.directory'] = '/'",
    "a file of settings": "plt.rc_context(fname=SECRET).__enter__()",
    "a style of the host": "plt.style.use(SECRET)",
    "a style of another package": "plt.style.use('json.style')",
    "an object in rcParams": "class A(str):\n    pass\nplt.rcParams['font.family'] = [object()]",
    "the real settings": "plt.rcParams._real()",
    "settings beside a style": "plt.style.core",
    "a library of styles": "plt.style.reload_library()",
    "matplotlib rcParams": "matplotlib.rcParams['backend'] = 'x'",
    "another backend": "matplotlib.use('module://this')",
    "switch_backend": "plt.switch_backend('svg')",
    "register a colormap": "matplotlib.colormaps.register(plt.get_cmap('jet'), name='pwned')",
    "close by a text that is not one": "class A(str):\n    def __eq__(self, other): return True\n    __hash__ = str.__hash__\nplt.close(A('x'))",
    "xkcd": "plt.xkcd()",
    "manager": "fig.canvas.manager",
    "os": "matplotlib.os",
    "cbook": "import matplotlib.cbook",
    "font manager": "import matplotlib.font_manager; matplotlib.font_manager.fontManager",
    "fonts of the host": "from matplotlib.font_manager import FontProperties; ax.text(0, 0, 'x', fontproperties=FontProperties(fname=SECRET)); fig.savefig(io.BytesIO())",
    "writers": "import matplotlib.animation as a; a.writers",
    "epoch": "import matplotlib.dates as d; d.set_epoch('2000-01-01')",
    "TeX text": "ax.text(0, 0, 'x').set_usetex(True)",
    "table of colors": "import matplotlib.colors as c; c.colorConverter.colors['red'] = 'blue'",
    "table of formats": "plt.figure().canvas.filetypes['x'] = 'y'",
    "table of events": "plt.figure().canvas.events",
    "table of corners": "ax = plt.figure().add_subplot(); ax.plot([1], label='a'); ax.legend().codes",
    "table of box styles": "from matplotlib.patches import BoxStyle; BoxStyle.get_styles().clear(); assert not BoxStyle.get_styles()",
    "table of markers": "from matplotlib.lines import Line2D; Line2D.markers['o'] = 'x'",
    "font of the host": "t = ax.text(0, 0, 'x'); f = t.get_fontproperties(); f.set_file(SECRET); t.set_fontproperties(f); fig.savefig(io.BytesIO())",
    "a label that walks": "class F(float): pass\nv = F(1)\nv.x = plt.subplots\nb = ax.bar([1], [2])\nax.bar_label(type(b)(b.patches, datavalues=[v], orientation='vertical'), fmt='{.x.__globals__}', label_type='center')",
    "fonts of the process": "fig.canvas.get_renderer().mathtext_parser.parse('$x$', 72).glyphs[0][0].set_charmap(2)",
    "formulas of the process": "fig.canvas.get_renderer().mathtext_parser.parse('$x$', 72).glyphs.clear()",
    "patching": "plt.Figure.savefig = None",
    "ginput": "fig.ginput()",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_matplotlib_denies(room, name):
    assert room("matplotlib", "numpy").refuses(START + HOSTILE[name])


def test_films_are_written_into_the_workspace_and_by_no_other_program(tmp_path):
    plt = pytest.importorskip(
        "matplotlib.pyplot", reason="matplotlib is not installed: its policy cannot be tried"
    )
    policy = Policy.default()
    policy.module(plt)
    target = tmp_path / "film.gif"
    source = (
        START
        + """
from matplotlib.animation import FuncAnimation
film = FuncAnimation(fig, lambda i: [], frames=2)
html = film.to_jshtml()
film.save("film.gif", writer="pillow")
for way in (lambda: film.save(TARGET, writer="pillow"), film.to_html5_video):
    try:
        way()
    except Exception as error:
        print(type(error).__name__)
"""
    )

    result = Sandbox(policy, fs=connect_fs(type="virtual")).exec(source, {"TARGET": str(target)})

    assert result.traceback == ""
    assert result.stdout.split() == ["FileNotFoundError", "RuntimeError"]
    assert "img" in result.namespace["html"]
    assert not target.exists()
    del result


def test_a_guest_closes_its_own_figures_and_no_others(room):
    plt = pytest.importorskip(
        "matplotlib.pyplot", reason="matplotlib is not installed: its policy cannot be tried"
    )
    host, other = plt.figure(), room("matplotlib", "numpy")
    other.run(START)
    mine = room("matplotlib", "numpy")
    others = plt.get_fignums()

    closed = mine.run(START + "plt.figure(); plt.close('all'); print(plt.get_fignums())")
    refused = mine.run(START + f"plt.close({host.number})")

    assert closed.stdout == f"{others}\n"
    assert "close a figure of your own" in str(refused.error)
    assert plt.figure(host.number) is host


class Gate:
    """Has a setter that a registration leaves out."""

    is_open = False

    def copy_properties(self, of):
        pass

    def set_open(self, value):
        self.is_open = value


@pytest.mark.parametrize(
    "effect", ["pe.Stroke(open=True)", "Own(open=True)", "pe.withStroke(**{Name('gate'): True})"]
)
def test_an_effect_calls_no_setter_that_is_left_out(room, effect):
    gate, sandbox = Gate(), room("matplotlib")
    sandbox.policy.cls(Gate, exclude=("set_open",))
    source = f"""
import matplotlib.patheffects as pe
class Names(dict):
    def copy(self): return dict(self)
    def __iter__(self): return iter(())
class Own(pe.Stroke):
    def draw_path(self, *args):
        self._gc = Names(open=True)
        super().draw_path(*args)
class Name(str):
    def __radd__(self, left): return left + "open"
class Renderer:
    def new_gc(self): return gate
    def draw_path(self, *args): pass
{effect}.draw_path(Renderer(), None, None, None, None)
"""

    assert sandbox.run(source, gate=gate).error is not None
    assert not gate.is_open


SHARED = {
    "the names of colors": ("import matplotlib.colors as c; c.get_named_colors_mapping()['red'] = 'blue'", "to_rgba('red')"),
    "the colors of a map": ("plt.get_cmap('inferno').colors[0] = [1, 1, 1]", "plt.get_cmap('inferno').colors[0]"),
    "a color of a map": ("plt.get_cmap('inferno').colors[0][0] = 1", "plt.get_cmap('inferno').colors[0]"),
    "the colors of a map by its name": ("plt.cm.inferno.colors[0][0] = 1", "plt.get_cmap('inferno').colors[0]"),
    "the unit circle": ("v = plt.Circle((0, 0), 1).get_path().vertices; v.flags.writeable = True; v[:] = 9", "Path.unit_circle().vertices.max()"),
    "the unit rectangle": ("v = plt.Rectangle((0, 0), 1, 1).get_path().vertices; v.setflags(write=True); v[:] = 9", "Path.unit_rectangle().vertices.max()"),
    "a unit polygon": ("from matplotlib.patches import RegularPolygon\nv = RegularPolygon((0, 0), 5).get_path().vertices; v.flags.writeable = True; v[:] = 9", "Path.unit_regular_polygon(5).vertices.max()"),
    "a hatch": ("h = type(plt.Circle((0, 0), 1).get_path()).hatch('/'); h.vertices[:] = 9", "Path.hatch('/').vertices.max()"),
    "the codes of a marker": ("ax.scatter([1], [2], marker='^').get_paths()[0].codes[:] = 3", "MarkerStyle('^').get_path().codes.max()"),
    "an arrow": ("from matplotlib.patches import Arrow; Arrow(0, 0, 1, 1).get_path().vertices[:] = 9", "Arrow._path.vertices.max()"),
    "the identity": ("plt.Line2D([0], [0]).get_transform().get_matrix()[0, 0] = 9", "IdentityTransform().get_matrix().max()"),
    "what draws legends": ("ax.plot([1], label='a'); type(ax.legend()).update_default_handler_map({str: 1})", "str in Legend.get_default_handler_map()"),
    "what draws all legends": ("ax.plot([1], label='a'); type(ax.legend()).set_default_handler_map({})", "len(Legend.get_default_handler_map())"),
    "the table of what draws legends": ("ax.plot([1], label='a'); ax.legend().get_legend_handler_map().clear(); type(ax.legend()).get_default_handler_map().clear()", "len(Legend.get_default_handler_map())"),
    "places of a formatter": ("plt.NullFormatter().locs.append(9)", "len(FuncFormatter(str).locs)"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The locs attribute")
@pytest.mark.parametrize("name", SHARED)
def test_what_objects_share_stays_the_hosts(room, name):
    sandbox = room("matplotlib", "numpy")
    source, seen = SHARED[name]
    names = {}
    exec(_HOST, names)
    before = copy.deepcopy(eval(seen, names))

    sandbox.run(START + source)

    assert eval(seen, names) == before


_HOST = """
import matplotlib.pyplot as plt
from matplotlib.colors import to_rgba
from matplotlib.legend import Legend
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Arrow
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import IdentityTransform
kept = Path.unit_regular_polygon(5)
"""


def test_a_color_is_not_remembered_under_a_text_that_says_itself_what_it_equals(room):
    to_rgba = pytest.importorskip(
        "matplotlib.colors", reason="matplotlib is not installed: its policy cannot be tried"
    ).to_rgba

    room("matplotlib").printed("""
        import matplotlib.colors as c
        class S(str):
            def __hash__(self): return hash('#123456')
            def __eq__(self, other): return True
        c.to_rgba(S('blue'))
    """)

    assert to_rgba("#123456") == (0x12 / 255, 0x34 / 255, 0x56 / 255, 1)


def test_a_label_walks_no_more_where_the_host_calls_a_function_later(room):
    source = """
def label():
    fig, ax = plt.subplots()
    class F(float): pass
    v = F(1)
    v.x = plt.subplots
    b = ax.bar([1], [2])
    bars = type(b)(b.patches, datavalues=[v], orientation="vertical")
    return ax.bar_label(bars, fmt="{.x.__globals__}", label_type="center")
"""
    label = room("matplotlib", "numpy").run(START + source).namespace["label"]

    with pytest.raises(SandboxAttributeError):
        label()


def test_show_does_nothing(room):
    assert room("matplotlib", "numpy").run(START + "plt.show()").error is None


LATER = """
import io, sys
import matplotlib
from agex.sandbox import Policy, Sandbox
policy = Policy.default()
policy.module(matplotlib)
session = Sandbox(policy).session()
assert session.run("import io\\nimport matplotlib.pyplot as plt\\nfig = plt.figure()").error is None
assert "fontTools.subset" not in sys.modules
lying = '''
class Format(str):
    __hash__ = str.__hash__
    def __eq__(self, other):
        open("/etc/passwd")
        return str.__eq__(self, other)
fig.savefig(io.BytesIO(), format=Format("pdf"))
'''
assert session.run(lying).error is not None
done = session.run("written = io.BytesIO()\\nfig.savefig(written, format='pdf')\\nwritten.getvalue()[:4]")
print(done.error, done.value, "fontTools.subset" in sys.modules)
"""


def test_what_writes_pdf_is_loaded_by_the_first_figure_that_is_written_so():
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("None b'%PDF' True\n", "")
