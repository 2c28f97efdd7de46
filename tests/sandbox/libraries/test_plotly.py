"""plotly under its policy: figures are built and shown as data; files, browsers and defaults are refused.

Stopped by: sandbox.libraries.plotly.
"""

import subprocess
import sys

import pytest

START = """
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
from plotly.subplots import make_subplots
df = pd.DataFrame({"x": [1, 2, 3], "y": [2.0, 1.0, 4.0], "c": ["a", "b", "a"]})
fig = go.Figure(layout={"title": "t"})
"""

EVERYDAY = {
    "express line": "print(px.line(df, x='x', y='y', color='c', title='t').to_json())",
    "express kinds": "print([len(f.to_dict()['data']) for f in (px.bar(df, x='x', y='y'), px.scatter(df, x='x', y='y', size='y'), px.histogram(df, x='c'), px.box(df, y='y'), px.pie(df, names='c', values='y'), px.area(df, x='x', y='y'))])",
    "graph objects": "f = go.Figure(data=[go.Bar(x=['a'], y=[1])], layout=go.Layout(title='q')); f.add_trace(go.Scatter(x=[1], y=[2], mode='lines', marker=go.scatter.Marker(size=3))); print(f.to_json())",
    "layout": "fig.update_layout(title='z', xaxis_title='x', template='plotly_dark'); fig.layout.title.text = 'w'; fig.layout.xaxis = go.layout.XAxis(range=[0, 1]); print(fig.layout.title.text, fig.to_dict()['layout']['xaxis'])",
    "subplots": "f = make_subplots(rows=1, cols=2, subplot_titles=['a', 'b']); f.add_trace(go.Box(y=[1, 2]), row=1, col=2); f.update_yaxes(title_text='v', row=1, col=2); print(f.to_json())",
    "traces": "fig.add_scatter(x=[1], y=[2]); fig.add_hline(y=1); fig.update_traces(line_color='red'); print(fig.data[0].type, fig.data[0].line.color, len(fig.layout.shapes))",
    "colors": "print(px.colors.qualitative.Plotly[0], px.colors.sequential.Viridis[0], px.colors.sample_colorscale('Viridis', [0.5]))",
    "data sets": "print(px.data.iris().shape, px.data.tips().columns.tolist())",
    "heat map": "print(px.imshow([[1, 2], [3, 4]]).to_dict()['data'][0]['type'], go.Heatmap(z=[[1]]).z)",
    "html": "print('plotly' in fig.to_html(include_plotlyjs=False, div_id='d'), len(fig.to_html(include_plotlyjs=False, full_html=False, div_id='d')))",
    "io": "import plotly.io as pio; print(pio.to_json(fig), pio.from_json(fig.to_json()).layout.title.text)",
    "a list of its own": "class L(list): pass\nprint(px.line(L([{'a': 1, 'b': 2}]), x='a', y='b').data[0].y)",
    "from imports": "from plotly.graph_objects import Figure, Pie; print(Figure(Pie(values=[1, 2])).to_json())",
}  # fmt: skip


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_plotly_prints_what_it_prints_natively(room, native, name):
    source = START + EVERYDAY[name]

    assert room("plotly", "pandas").printed(source) == native(source)


ADDRESS = """
lies = b"what lies at an address"
class Buffer:
    def __init__(self): self.ptr, self.bufsize = id(lies) + 32, len(lies)
class Column:
    offset, null_count, describe_null, dtype = 0, 0, (0, None), (1, 8, "C", "=")
    size = lambda self: len(lies)
    num_chunks = lambda self: 1
    get_buffers = lambda self: {"data": (Buffer(), self.dtype), "validity": None, "offsets": None}
class Table:
    column_names = lambda self: ["x", "y"]
    num_chunks = lambda self: 1
    get_chunks = lambda self: [self]
    get_column_by_name = lambda self, name: Column()
    select_columns_by_name = lambda self, names: self
table = Table()
tells = {"__dataframe__": lambda **said: table}
"""

HOSTILE = {
    "an address, of an object": ADDRESS + "vars(table).update(tells, _df=table)\nprint(px.scatter(table, x='x', y='y').data[0].x)",
    "an address, of a namespace": ADDRESS + "import types\ntable = types.SimpleNamespace(**tells, **{n: getattr(table, n) for n in dir(table) if n[0] != '_'})\n"
    "vars(table).update(_df=table, select_columns_by_name=lambda names: table)\nprint(px.line(table, x='x', y='y').data[0].x)",
    "write_html": "fig.write_html(TARGET, include_plotlyjs=False)",
    "write_html off the class": "go.Figure.write_html(fig, TARGET)",
    "write_json": "fig.write_json(TARGET)",
    "write_image": "fig.write_image(TARGET)",
    "to_image": "fig.to_image('png')",
    "show": "fig.show()",
    "full figure": "fig.full_figure_for_development()",
    "io write_html": "import plotly.io as pio; pio.write_html(fig, TARGET)",
    "io write_json": "import plotly.io as pio; pio.write_json(fig, TARGET)",
    "io read_json": "import plotly.io as pio; pio.read_json(SECRET)",
    "templates": "import plotly.io as pio; pio.templates.default = 'none'",
    "renderers": "import plotly.io as pio; pio.renderers.default = 'json'",
    "defaults": "px.defaults.template = 'none'",
    "offline": "import plotly.offline as off; off.plot(fig, filename=TARGET)",
    "optional imports": "import plotly.optional_imports as o; o.get_module('os')",
    "optional imports by attribute": "px.optional_imports.get_module('os')",
    "importer of graph objects": "go.relative_import('os', ['os'], [])[1]('path')",
    "lookup of graph objects": "go.orig_getattr('os')",
    "tools": "import plotly.tools",
    "a module behind a layout": "fig.layout.re.enum.sys",
    "a module behind the class of layouts": "go.Layout.re.enum.sys",
    "a module behind a layout of its own": "class L(go.Layout):\n  def f(self): return super().re.enum.sys\nL().f()",
    "utils": "import plotly.utils",
    "importlib": "import plotly; plotly.importlib",
    "lazy module's own": "go.layout.__getattr__('x')",
    "private of a lazy module": "go.layout._title",
    "patching": "go.Figure.add_trace = None",
    "super": "class F(go.Figure):\n    def go(self): super().write_html(TARGET)\nF().go()",
    "getattr": "getattr(fig, 'write_' + 'html')(TARGET)",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_plotly_denies(room, name):
    assert room("plotly", "pandas").refuses(START + HOSTILE[name])


def test_lists_of_colors_are_copies(room):
    px = pytest.importorskip("plotly.express", reason="plotly is not installed: its policy cannot be tried")
    room("plotly").printed("import plotly.express as px; px.colors.qualitative.Plotly[0] = 'pwned'")

    assert px.colors.qualitative.Plotly[0] != "pwned"


def test_lists_in_tables_of_colors_are_copies(room):
    colors = pytest.importorskip(
        "plotly.colors", reason="plotly is not installed: its policy cannot be tried"
    )
    room("plotly").printed("import plotly.colors as c; c.PLOTLY_SCALES['Viridis'][0][1] = 'pwned'")

    assert colors.PLOTLY_SCALES["Viridis"][0] == [0, "#440154"]


def test_graph_objects_do_without_numpy():
    code = """
import sys
sys.modules["numpy"] = sys.modules["pandas"] = None  # not installed
import plotly
from agex.sandbox import Policy, Sandbox
policy = Policy.default()
policy.module(plotly)
result = Sandbox(policy).exec("import plotly.graph_objects as go; print(len(go.Figure(go.Bar(y=[1])).data))")
print(result.error, result.stdout)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "1"]
