"""pandas under its policy: everyday code as natively, paths, text as code and names of methods refused.

Stopped by: sandbox.libraries.pandas, sandbox.libraries.argument_checks.
"""

import pytest

FRAME = """
import pandas as pd
import numpy as np
from io import StringIO, BytesIO
df = pd.DataFrame({"k": ["a", "b", "a", "c"], "v": [1.0, 2.0, 3.0, None], "n": [1, 2, 3, 4]})
days = pd.Series(range(10), index=pd.date_range("2024-01-01", periods=10, freq="D"))
"""

EVERYDAY = {
    "groupby": "print(df.groupby('k')['v'].sum(), df.groupby('k').agg({'v': 'mean', 'n': ['min', 'max']}), df.groupby('k').agg(total=('n', 'sum'), top=('v', lambda s: s.max())), df.groupby('k').agg(low=pd.NamedAgg(column='n', aggfunc='min')), df.groupby('k').n.agg(low='min', high=np.max))",
    "groupby size": "print(df.groupby('k').size(), df.groupby('k').n.transform('mean'), df.groupby('k').n.apply(lambda s: s.iloc[0]), df.groupby('k').filter(lambda g: len(g) > 1))",
    "agg of a list": "print(df[['v', 'n']].agg(['sum', 'mean', np.min]), df.n.agg('sum'), df.n.agg(['min', max]), df.agg({'n': sum}))",
    "merge": "print(df.merge(pd.DataFrame({'k': ['a', 'b'], 'w': [9, 8]}), on='k', how='left'), pd.concat([df, df]).shape)",
    "pivot": "print(df.pivot_table(index='k', values='n', aggfunc='sum'), pd.pivot_table(df, index='k', values=['v', 'n'], aggfunc={'v': 'mean', 'n': 'sum'}), pd.crosstab(df.k, df.n))",
    "apply": "print(df.apply(lambda r: f\"{r['k']}{r['n']}\", axis=1), df.n.apply(lambda x: x * 2), df.n.map({1: 'one'}), df[['n']].apply('sum'), df.n.apply(np.sqrt), df.n.transform('cumsum'))",
    "query": "lo, names = 1, ['a', 'b']\nprint(df.query('n > @lo and k in @names'), df.query('1 < n <= 3 | ~(v > 1)'), df.query('k == \"a\"', engine='python'), df.query('index >= @ lo').query('not (n == 2)'))",
    "query in a function": "def f(x):\n    y = 1\n    return df.query('n == @x + @y').k.tolist()\nprint(f(1), (lambda z: df.query('n == @z'))(2))",
    "query of other columns": "print(df.rename(columns={'n': 'my n'}).query('`my n` > 1'), days.to_frame('d').query('index > \"2024-01-08\"'))",
    "eval": "print(df.eval('n + 1'), df.eval('m = n * 2\\no = m ** 2 - v'))",
    "apply with keywords": "print(df.n.apply(lambda x, lo, names: x + lo[0], lo=[1, 2], names=('a', 'zz')), df.apply(lambda c, how: how, how='zz'), df.n.agg(lambda s, q: s.quantile(q), q=0.5))",
    "read_csv": "print(pd.read_csv(StringIO('a,b\\n1,x\\n2,y')).dtypes, pd.read_csv(BytesIO(b'a;b\\n1;2'), sep=';'))",
    "to_csv": "print(df.to_csv(), df.to_csv(index=False, sep=';')); s = StringIO(); df.to_csv(s); print(len(s.getvalue()))",
    "to text": "print(df.to_string(), df.to_html(), df.to_json(), df.to_json(orient='records'), df.to_dict('records'))",
    "formats": "print(df.to_string(float_format='%.2f'), df.to_string(float_format='{:.1f}'.format), df.to_csv(float_format='%.1f'))",
    "read_json": "print(pd.read_json(StringIO('[{\"a\": 1}, {\"a\": 2}]')), pd.json_normalize([{'a': {'b': 1}}]))",
    "conversions": "print(df.n.to_list(), df.n.to_numpy(), df.values.shape, df.to_records(index=False)[0], pd.to_numeric(pd.Series(['1', 'x']), errors='coerce'))",
    "dates": "print(pd.to_datetime(['2024-01-31', '2024-02-01']), days.resample('3D').sum(), days.resample('W').agg('mean'), days.index.day_name()[0], pd.Timestamp('2024-01-01') + pd.Timedelta(days=1))",
    "rolling": "print(days.rolling(3).mean().tail(2), days.expanding().sum().iloc[-1], days.ewm(span=2).mean().iloc[-1], days.rolling(2).agg(['sum', 'max']).tail(1), days.rolling(2).apply(lambda w: w.iloc[0]).tail(1))",
    "strings": "print(df.k.str.upper(), df.k.str.contains('a'), df.k.str.cat(sep='-'), pd.Series(['a b']).str.split().str[0])",
    "selection": "print(df.loc[df.n > 2, ['k', 'n']], df.iloc[0], df.at[0, 'n'], df[df.k.isin(['a'])], df.nlargest(2, 'n'), df.select_dtypes('number').columns.tolist(), df.filter(items=['n']), df.filter(like='v'))",
    "assignment": "d = df.copy(); d['w'] = d.n * 2; d.loc[0, 'w'] = 9; d.columns = list('abcd'); d.index.name = 'i'; d.a.name = 'q'; print(d, d.assign(e=lambda x: x.c + 1))",
    "missing": "print(df.isna().sum(), df.fillna(0), df.dropna(), df.v.interpolate(), df.v.ffill())",
    "sorting": "print(df.sort_values(['k', 'n'], ascending=[True, False]), df.sort_index(ascending=False), df.rank(numeric_only=True), df.n.sort_values(key=lambda s: -s))",
    "statistics": "print(df.describe(), df.n.value_counts(), df[['v', 'n']].corr(), df.n.quantile([.25, .5]), df.n.cumsum(), df.n.pct_change())",
    "reshaping": "print(df.melt(id_vars='k'), df.set_index(['k', 'n']).unstack(), df.stack().head(3), df.explode('k').shape, pd.get_dummies(df.k), df.T)",
    "categories": "c = pd.Categorical(['a', 'b'], categories=['b', 'a'], ordered=True); print(c.codes, pd.cut(df.n, 2), pd.qcut(df.n, 2, labels=['lo', 'hi']), df.k.astype('category').cat.categories)",
    "codes": "c = pd.Categorical.from_codes(codes=np.array([1, 0]), categories=['a', 'b']); print(c, pd.Categorical.from_codes(pd.array([0, 1]), ['x', 'y'], True).codes, pd.Series(c).cat.codes, pd.CategoricalIndex(c).codes, pd.MultiIndex.from_product([[1], ['a', 'b']]).set_levels(['c', 'd'], level=1).codes)",
    "multi-index": "i = pd.MultiIndex.from_tuples([(1, 'a'), (2, 'b')], names=['x', 'y']); print(pd.Series([1, 2], index=i).loc[1], isinstance(i, pd.MultiIndex), i.get_level_values('y'))",
    "iteration": "print([(i, r.k) for i, r in df.iterrows()], [t.n for t in df.itertuples()], list(df.items())[0][0], dict(list(df.groupby('k')))['a'].shape)",
    "types": "print(isinstance(df, pd.DataFrame), type(df.n).__name__, pd.api.types.is_numeric_dtype(df.n), df.dtypes, pd.isna(None), pd.NA, pd.NaT)",
    "info": "df.info(); print(df.shape, df.memory_usage().sum() > 0, len(df))",
    "pipe": "print(df.pipe(lambda d: d.n.sum()), df.where(df.n > 1, 0).n, df.n.mask(df.n > 1), df.n.clip(2, 3), df.n.between(2, 3))",
    "testing": "pd.testing.assert_frame_equal(df, df.copy()); print('same')",
    "offsets": "print(pd.Timestamp('2024-01-31') + pd.offsets.MonthEnd(1), pd.tseries.offsets.BDay(2) + pd.Timestamp('2024-01-05'), days.asfreq('2D').head(2))",
    "subclass": "class D(pd.DataFrame):\n    def total(self): return super().sum(numeric_only=True).sum()\nprint(D({'a': [1, 2]}).total())",
}  # fmt: skip


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_pandas_prints_what_it_prints_natively(room, native, name):
    source = FRAME + EVERYDAY[name]

    assert room("pandas", "numpy").printed(source) == native(source)


HOSTILE = {
    "no day": "pd.DateOffset().is_month_start(None)",
    "no day, off the class": "pd.DateOffset.is_year_end(pd.DateOffset(), ts=None)",
    "reader by its class": "r = pd.read_csv(StringIO('a'), chunksize=1); type(r)(StringIO('a'))",
    **{
        f"{reader} of a path": f"print(pd.{reader}(SECRET))"
        for reader in ("read_csv", "read_table", "read_fwf", "read_json", "read_pickle", "read_excel", "read_html",
                       "read_xml", "read_parquet", "read_feather", "read_hdf", "read_sas", "read_stata", "read_orc")
    },
    **{
        f"{writer} to a path": f"df.{writer}(TARGET)"
        for writer in ("to_csv", "to_json", "to_html", "to_string", "to_markdown", "to_pickle", "to_excel", "to_hdf",
                       "to_parquet", "to_feather", "to_stata", "to_xml", "to_latex", "to_orc")
    },
    "read_csv of a URL": "pd.read_csv('http://127.0.0.1:9/x')",
    "read_csv of a path-like": "class P(StringIO):\n    def __fspath__(self): return SECRET\nprint(pd.read_csv(P('')))",
    "read_csv of an object with read": "class R:\n    def read(self, n=-1): return 'a'\n    def __fspath__(self): return SECRET\npd.read_csv(R())",
    "to_csv by keyword": "df.to_csv(path_or_buf=TARGET)",
    "to_csv off the class": "pd.DataFrame.to_csv(df, TARGET)",
    "to_csv through super": "class D(pd.DataFrame):\n    def go(self): return super().to_csv(TARGET)\nD(df).go()",
    "to_pickle through super": "class D(pd.DataFrame):\n    def go(self): return super().to_pickle(TARGET)\nD(df).go()",
    "to_csv of a series": "df.n.to_csv(TARGET)",
    "to_csv by getattr": "getattr(df, 'to_csv')(TARGET)",
    "to_csv by methodcaller": "import operator; operator.methodcaller('to_csv', TARGET)(df)",
    "to_csv mapped": "list(map(pd.DataFrame.to_csv, [df], [TARGET]))",
    "to_csv of an expression": "df.assign(x=pd.col('n').to_csv(TARGET))",
    "an array of an expression": "print(df.assign(x=pd.col('n').values.dumps()))",
    "memory of an expression": "df.assign(x=pd.col('n').to_numpy().ctypes)",
    "a format that walks": "df.to_string(float_format='{0.__class__.__mro__}')",
    "a format that walks into a file": "df.to_csv(float_format='{0.real.__class__.__dict__}')",
    "apply by name": "df.apply('to_csv', args=(TARGET,))",
    "apply of a series by name": "df.n.apply('to_csv', args=(TARGET,))",
    "agg by name": "df.agg('to_csv', 0, TARGET)",
    "aggregate by name": "df.n.aggregate('to_csv', 0, TARGET)",
    "agg by a name in a list": "df.agg(['to_clipboard'])",
    "agg by a name in a dict": "df.agg({'n': 'to_pickle'})",
    "agg by a name in an odd dict": "class M(dict):\n    n = 0\n    def items(self): return [('n', 'to_clipboard')]\ndf.agg(M(n='sum') | {'n': 'to_clipboard'})",
    "agg by a name that lies": "class S(str):\n    def __hash__(self): return hash('sum')\n    def __eq__(self, o): return True\ndf.n.agg(S('to_clipboard'))",
    "agg of a named pair": "df.groupby('k').agg(x=('n', 'to_pickle'))",
    "agg of a NamedAgg": "df.groupby('k').agg(x=pd.NamedAgg(column='n', aggfunc='hist'))",
    "agg of a series of names": "df.agg(pd.Series({'n': 'to_clipboard'}))",
    "agg of an array of names": "df.agg(np.array(['to_clipboard'], dtype=object))",
    "agg of a numpy string": "df.n.agg(np.str_('to_clipboard'))",
    "groupby agg by name": "df.groupby('k').agg('plot')",
    "groupby apply by name": "df.groupby('k').n.apply('to_csv')",
    "groupby filter by name": "df.groupby('k').n.filter('to_csv')",
    "transform by name": "df.transform('to_csv')",
    "private through a name": "df.n.agg('__getattribute__', 0, '_mgr')",
    "private through a keyword": "df.n.agg(func='__getattribute__')",
    "resample by name": "days.resample('D').agg('__reduce__')",
    "rolling by name": "days.rolling(2).agg('__reduce__')",
    "pivot by name": "df.pivot_table(index='k', values='n', aggfunc='to_csv')",
    "pd.pivot_table by name": "pd.pivot_table(df, index='k', values='n', aggfunc='to_csv')",
    "crosstab by name": "pd.crosstab(df.k, df.n, values=df.v, aggfunc='to_csv')",
    "query with attributes": "df.query('@df.n')",
    "query with methods": "df.query('k.str.contains(\"a\")', engine='python')",
    "query with calls": "f = lambda: 1\ndf.query('@f()')",
    "query with an index": "df.query('n[0] == 1')",
    "query over frames": "df.query('@__builtins__ == 1')",
    "query over frames, as pandas writes it": "df.query('__pd_eval_local___builtins__ == 1')",
    "query over frames of others": "df.query('@real == 1')",
    "query with names that are given": "df.query('n == @x', local_dict={'x': 1})",
    "query with another engine": "df.query('n == 1', engine='numexpr')",
    "query in two lines": "df.eval('a = n\\nb = n.index')",
    "query in a text that lies": "class S(str):\n    def splitlines(self): return []\ndf.query(S('n.index == 0'))",
    "eval into an attribute": "df.eval('n.x = 1')",
    "eval of a class": "pd.DataFrame.eval(df, 'n.index')",
    "pd.eval": "pd.eval('1')",
    "pd.core eval": "pd.core.computation.eval.eval('1')",
    "style": "df.style.to_html(TARGET)",
    "plot": "df.plot(backend='this')",
    "a plot's backend by option": "pd.set_option('plotting.backend', 'this')",
    "a backend by attribute": "pd.options.plotting.backend = 'this'",
    "a backend by a pattern": "pd.set_option('ting.backend', 'this')",
    "a backend by a dict": "pd.set_option({'plotting.backend': 'this'})",
    "a backend in a context": "pd.option_context('plotting.backend', 'this').__enter__()",
    "an engine by option": "pd.set_option('io.parquet.engine', 'this')",
    "the table of options": "pd.options.d",
    "the table of a group": "pd.options.display.d",
    "hist": "df.hist(backend='this')",
    "boxplot": "df.boxplot(backend='this')",
    "a scatter matrix of another": "pd.plotting.plot_params",
    "an engine of workbooks": "df.to_excel('a.xlsx', engine='xlsxwriter')",
    "an engine that reads workbooks": "pd.read_excel(io.BytesIO(b''), engine='this')",
    "xml by lxml": "pd.read_xml(io.StringIO('<r><row><a>1</a></row></r>'), parser='lxml')",
    "a stylesheet": "pd.read_xml(io.StringIO('<r><row><a>1</a></row></r>'), stylesheet=SECRET)",
    "a stylesheet out": "df.to_xml(stylesheet=SECRET)",
    "html of the host": "pd.read_html(SECRET)",
    "a workbook of the host": "pd.ExcelFile(SECRET)",
    "a workbook to the host": "pd.ExcelWriter(TARGET)",
    "accessors": "pd.api.extensions.register_dataframe_accessor('x')",
    "io": "pd.io.common.os",
    "io import": "import pandas.io.common",
    "compat": "pd.compat.sys",
    "core import": "import pandas.core.frame",
    "util": "import pandas.util",
    "window bounds": "pd.api.indexers.BaseIndexer",
    "codes of a multi-index": "pd.MultiIndex(levels=[['a']], codes=[[100]], verify_integrity=False)",
    "codes of a multi-index by type": "type(pd.MultiIndex.from_tuples([(1, 2)]))(levels=[['a']], codes=[[100]], verify_integrity=False)",
    "an index of its own": "class I(pd.RangeIndex):\n    def get_indexer(self, *a, **k): return np.array([10**9])",
    "an array of its own": "class A(pd.arrays.IntegerArray):\n    def factorize(self, *a, **k): return np.array([10**9] * 3), self",
    "a type of its own": "class D(pd.CategoricalDtype):\n    categories = property(lambda self: pd.Index([1]))",
    "an array of its own by type": "type('A', (type(pd.array([1])),), {})",
    "codes that are not checked": "pd.Categorical.from_codes([9], ['a'], validate=False)",
    "codes that are not checked, by position": "pd.Categorical.from_codes([9], ['a'], None, None, False)",
    "levels that are not checked": "pd.MultiIndex.from_tuples([(1, 2), (2, 3)]).set_levels([[1], [2]], verify_integrity=False)",
    "codes as another type": "pd.Categorical(['a']).view('i1')[0] = 9",
    "codes of an index as another type": "pd.CategoricalIndex(['a']).view('i1')[0] = 9",
    "codes off the class": "pd.Categorical.codes",
    "set_codes": "pd.MultiIndex.from_tuples([(1, 2)]).set_codes([[9], [9]], verify_integrity=False)",
    "from_coo": "pd.Series.sparse.from_coo(1)",
    "positions of a sparse array": "pd.arrays.SparseArray([1, 0]).sp_index",
    "memory of values": "df.values.tofile(TARGET)",
    "a generator as JSON": "print(pd.Series([(i for i in [1])]).to_json())",
    "to_sql by URL": "df.to_sql('t', 'sqlite:///' + TARGET)",
    "read_sql by URL": "pd.read_sql('select 1', 'sqlite:///' + TARGET)",
    "HDFStore": "pd.HDFStore(TARGET)",
    "ExcelWriter": "pd.ExcelWriter(TARGET)",
    "patching": "pd.DataFrame.sum = None",
    "patching by setattr": "setattr(pd.Series, 'sum', None)",
    "match": "match df:\n    case pd.DataFrame(to_pickle=w): w(TARGET)\n    case _: raise ValueError",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_pandas_denies(room, name):
    assert room("pandas", "numpy").refuses(FRAME + HOSTILE[name])


def test_a_frame_is_guarded_where_only_its_class_was_granted(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed: its policy cannot be tried")
    from agex.sandbox import Policy, Sandbox

    policy = Policy.default()
    policy.cls(pd.DataFrame, constructable=False)
    target = tmp_path / "out.csv"
    result = Sandbox(policy).exec(
        "df.to_csv(target)", {"df": pd.DataFrame({"a": [1]}), "target": str(target)}
    )

    assert "does not open" in str(result.error)
    assert not target.exists()


@pytest.mark.parametrize(
    "made",
    [
        "pd.Categorical(['a', 'b'])",
        "pd.CategoricalIndex(['a', 'b'])",
        "pd.MultiIndex.from_tuples([(1, 2), (2, 3)])",
    ],
)
def test_codes_are_handed_out_as_a_copy(room, made):
    source = f"""
i = {made}
codes = i.codes if i.ndim == 1 and not isinstance(i, pd.MultiIndex) else i.codes[0]
codes.flags.writeable = True
codes[:] = 100
assert 100 not in np.asarray(i.codes)
"""
    room("pandas", "numpy").printed(FRAME + source)


def test_codes_that_were_given_are_copied(room):
    source = """
class A:
    def __array__(self, dtype=None, copy=None): return given
given = np.array([0, 1], "int8")
found = [pd.Categorical.from_codes(each, ["a", "b"]) for each in (given, A())]
given[:] = 100
print(found[0].tolist(), found[1].tolist())
"""
    assert room("pandas", "numpy").printed(FRAME + source) == "['a', 'b'] ['a', 'b']\n"


def test_the_refusal_says_what_to_write_instead(room):
    result = room("pandas").run("import pandas as pd; pd.DataFrame({'a': [1]}).to_csv('out.csv')")

    assert str(result.error) == (
        "to_csv() here does not open str 'out.csv'; call to_csv() without a path to get the text, "
        "or pass an io.StringIO or io.BytesIO"
    )
