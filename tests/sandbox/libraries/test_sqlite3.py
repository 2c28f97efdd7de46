"""sqlite3 under its policy: databases in memory as natively; files and extensions are refused.

Stopped by: sandbox.libraries.sqlite.
"""

import sqlite3

import pytest

from agex.errors import EvalError, SandboxError
from agex.files import connect_fs
from agex.sandbox import Limits, Policy, Sandbox

START = """
import sqlite3
db = sqlite3.connect(":memory:")
db.execute("create table t (id integer primary key, name text, v real)")
db.executemany("insert into t (name, v) values (?, ?)", [("a", 1.5), ("b", 2.5)])
"""

EVERYDAY = {
    "select": "print(db.execute('select name, v from t where v > ?', (2,)).fetchall(), db.execute('select sum(v) from t').fetchone())",
    "cursor": "c = db.cursor(); c.execute('insert into t (name) values (?)', ('c',)); db.commit(); print(c.lastrowid, c.rowcount, [d[0] for d in c.execute('select * from t').description])",
    "rows": "db.row_factory = sqlite3.Row; r = db.execute('select * from t').fetchone(); print(r['name'], r.keys(), tuple(r))",
    "context": "with db:\n    db.execute(\"update t set v = 0\")\nprint(db.total_changes, list(db.execute('select v from t')))",
    "rollback": "try:\n    with db:\n        db.execute('delete from t')\n        raise ValueError\nexcept ValueError:\n    pass\nprint(db.execute('select count(*) from t').fetchone())",
    "errors": "try:\n    db.execute('select * from nothing')\nexcept sqlite3.OperationalError as e:\n    print(e)\ntry:\n    db.execute('insert into t (id) values (1)')\nexcept sqlite3.IntegrityError as e:\n    print(e)",
    "functions": "db.create_function('twice', 1, lambda x: x * 2); print(db.execute('select twice(v) from t').fetchall())",
    "aggregate": "class S:\n    def __init__(self): self.n = 0\n    def step(self, x): self.n += x\n    def finalize(self): return self.n\ndb.create_aggregate('s', 1, S); print(db.execute('select s(v) from t').fetchone())",
    "script": "db.executescript('create view w as select name from t; create index i on t (name);'); print(db.execute('select * from w').fetchall())",
    "pragmas": "print(db.execute('pragma table_info(t)').fetchall(), db.execute('pragma foreign_keys').fetchone())",
    "window and cte": "print(db.execute('with q as (select v, row_number() over (order by v desc) r from t) select * from q').fetchall())",
    "full text": "db.execute('create virtual table f using fts5(body)'); db.execute(\"insert into f values ('hello world')\"); print(db.execute(\"select * from f where f match 'hello'\").fetchall())",
    "backup": "db.commit(); b = sqlite3.connect(':memory:'); db.backup(b, pages=1, progress=lambda *a: print(a)); print(b.execute('select * from t').fetchall())",
    "dump": "print(list(db.iterdump()))",
    "with pandas": "import pandas as pd; pd.DataFrame({'a': [1, 2]}).to_sql('p', db, index=False); print(pd.read_sql('select sum(a) s from p', db), pd.read_sql_query('select * from t', db))",
    "types": "print(isinstance(db, sqlite3.Connection), type(db) is sqlite3.Connection, sqlite3.Error.__name__)",
}  # fmt: skip


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_sqlite_prints_what_it_prints_natively(room, native, name):
    source = START + EVERYDAY[name]

    assert room("sqlite3", "pandas").printed(source) == native(source)


HOSTILE = {
    "file": "sqlite3.connect(TARGET)",
    "file by keyword": "sqlite3.connect(database=TARGET)",
    "uri": "sqlite3.connect('file:' + TARGET + '?mode=rwc', uri=True)",
    "uri in memory": "sqlite3.connect(':memory:', uri=True)",
    "string of its own": "class S(str):\n    def __eq__(self, o): return True\n    __ne__ = lambda self, o: False\nsqlite3.connect(S(TARGET))",
    "empty name": "sqlite3.connect('')",
    "class": "sqlite3.Connection(TARGET)",
    "class by type": "type(db)(TARGET)",
    "class by new": "c = type(db).__new__(type(db)); c.__init__(TARGET)",
    "again": "db.__init__(TARGET)",
    "factory": "sqlite3.connect(':memory:', factory=print)",
    "attach": "db.execute('attach database ? as x', (TARGET,))",
    "attach in a script": "db.executescript(\"attach '\" + TARGET + \"' as x; create table x.t (a);\")",
    "vacuum into": "db.commit(); db.execute('vacuum into ?', (TARGET,))",
    "authorizer": "db.set_authorizer(None)",
    "authorizer by getattr": "getattr(db, 'set_authorizer')(None)",
    "progress": "db.set_progress_handler(None, 1)",
    "extension": "db.enable_load_extension(True)",
    "extension in SQL": "db.execute(\"select load_extension('x')\")",
    "directory pragma": "db.execute(\"pragma temp_store_directory = '/tmp'\")",
    "schema pragma": "db.execute('pragma writable_schema = 1')",
    "other tables": "db.execute('create virtual table f using dbstat')",
    "image": "db.deserialize(b'x')",
    "adapter": "sqlite3.register_adapter(int, str)",
    "converter": "sqlite3.register_converter('x', str)",
    "adapters": "sqlite3.adapters.clear()",
    "dbapi2": "import sqlite3.dbapi2",
    "tracebacks": "sqlite3.enable_callback_tracebacks(True)",
    "getter": "db.create_function('f', 1, lambda n: getattr(db, n)); db.execute(\"select f('set_authorizer')\").fetchone()",
    "patching": "sqlite3.Row.keys = None",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_sqlite_denies(room, name):
    assert room("sqlite3").refuses(START + HOSTILE[name])


COUNT = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 9) select f(x) from c"
CALLED_BACK = {
    "function closes": "db.create_function('f', 0, db.close); db.execute('select f()')",
    "aggregate closes": "class A:\n    def step(self): db.close()\n    def finalize(self): db.close()\ndb.create_aggregate('f', 0, A); db.execute('select f() from t')",
    "collation closes": "db.create_collation('c', lambda a, b: db.close()); db.execute('select name from t order by 1 collate c')",
    "trace closes": "db.set_trace_callback(lambda text: db.close()); db.commit(); db.set_trace_callback(None); 1 / 0",
    "window closes": "class W:\n    step = inverse = value = finalize = lambda *a: db.close()\ndb.create_window_function('f', 0, W); db.execute('select f() over () from t').fetchall()",
    "parameters close": "class L(list):\n    def __getitem__(self, i): db.close()\ndb.execute('select ?', L([1]))",
    "rows close": "def rows():\n    yield (7,)\n    db.close()\ndb.cursor().executemany('insert into t (id) values (?)', rows())",
    "row closes": "c = db.cursor(); c.row_factory = lambda *a: db.close(); c.execute('select 1').fetchone()",
    "closing": "import contextlib\ndef f():\n    with contextlib.closing(db): pass\ndb.create_function('f', 0, f); db.execute('select f()')",
    "backup closes": "db.commit(); b = sqlite3.connect(':memory:'); db.backup(b, pages=1, progress=lambda *a: b.close())",
    "cursor goes on": f"c = db.cursor(); db.create_function('f', 1, lambda x: x if x < 3 else next(c)[0])\nfor row in c.execute({COUNT!r}): pass",
    "cursor is used again": f"c = db.cursor(); db.create_function('f', 1, lambda x: x if x < 3 else c.execute('select 1'))\nfor row in c.execute({COUNT!r}): pass",
    "cursor fetches": f"c = db.cursor(); db.create_function('f', 1, lambda x: x if x < 3 else c.fetchall())\nc.execute({COUNT!r}).fetchall()",
    "cursor of the real class": "type(db.cursor())(db)",
    "cursor of one's own": "db.cursor(type('C', (sqlite3.Cursor,), {}))",
}  # fmt: skip


@pytest.mark.parametrize("where", [":memory:", "a.db"])
@pytest.mark.parametrize("name", CALLED_BACK)
def test_a_connection_stays_open_while_a_statement_of_it_runs(room, name, where):
    then = "import sqlite3\ntry:\n    {}\nexcept Exception:\n    print(db.execute('select count(*) from t where id < 3').fetchone())"
    program = CALLED_BACK[name].replace("\n", "\n    ")
    source = START.replace(":memory:", where) + then.format(program) + "\ndb.close()"
    sandbox = Sandbox(room("sqlite3").policy, fs=connect_fs(), limits=Limits(seconds=60))
    result = sandbox.exec(source)

    assert (result.traceback, result.stdout) == ("", "(2,)\n")


def test_a_function_called_by_a_statement_can_ask_the_same_connection(room, native):
    source = (
        START
        + "db.create_function('f', 1, lambda i: db.execute('select name from t where id = ?', (i,)).fetchone()[0])\nprint(db.execute('select f(id) from t').fetchall())"
    )

    assert room("sqlite3").printed(source) == native(source)


QUERY = "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c"
ENDLESS = {
    "query": f"c.execute({QUERY!r}).fetchall()",
    "backup of what is not committed": "c.execute('create table t (a)')\nc.execute('insert into t values (1)')\n"
    "c.backup(sqlite3.connect(':memory:'))",
}


@pytest.mark.parametrize("program", ENDLESS.values(), ids=ENDLESS)
def test_what_never_ends_ends_at_the_limit(program):
    policy = Policy.default()
    policy.module(sqlite3)
    result = Sandbox(policy, limits=Limits(seconds=0.3)).exec(
        f"import sqlite3\nc = sqlite3.connect(':memory:')\n{program}"
    )

    assert isinstance(result.error, EvalError)


LASTING = {
    "function": "db.create_function('lower', 1, seen)",
    "aggregate": "db.create_aggregate('lower', 1, seen)",
    "collation": "db.create_collation('binary', seen)",
    "trace": "db.set_trace_callback(seen)",
    "rows": "db.row_factory = lambda cursor, row: seen(row)",
    "rows by name": "setattr(db, 'row_factory', lambda cursor, row: seen(row))",
    "rows by object": "object.__setattr__(db, 'row_factory', lambda cursor, row: seen(row))",
    "rows in a loop": "for db.row_factory in [lambda cursor, row: seen(row)]: pass",
    "text": "db.text_factory = seen",
}


@pytest.mark.parametrize("source", LASTING.values(), ids=LASTING)
def test_a_connection_of_the_host_calls_no_guest_after_the_run(source):
    db = sqlite3.connect(":memory:")
    db.execute("create table t (name text)")
    db.execute("insert into t values ('A')")
    policy = Policy.default()
    policy.module(db, name="db")
    session = Sandbox(policy).session()
    result = session.run(f"found = []\ndef seen(*given): found.append(given)\n{source}")

    assert isinstance(result.error, SandboxError)
    assert db.execute("select lower(name) from t order by name").fetchall() == [("a",)]
    assert session.namespace["found"] == []


def test_rows_of_a_connection_of_the_host_may_be_those_of_sqlite3():
    db = sqlite3.connect(":memory:")
    policy = Policy.default()
    policy.module(sqlite3)
    policy.module(db, name="db")
    result = Sandbox(policy).exec(
        "import sqlite3\ndb.row_factory = sqlite3.Row\nprint(db.execute('select 1 as a').fetchone()['a'])\n"
        "db.row_factory = None\ncursor = db.cursor()\ncursor.row_factory = lambda cursor, row: list(row)\n"
        "print(cursor.execute('select 2').fetchall())"
    )

    assert result.error is None
    assert result.stdout == "1\n[[2]]\n"


ATTACHING = {
    "attach": "db.execute('attach ? as x', (TARGET,))",
    "attach by a cursor": "db.cursor().execute('attach ? as x', (TARGET,))",
    "attach in a script": 'db.executescript("attach \'" + TARGET + "\' as x; create table x.t (a)")',
    "attach in a script of a cursor": 'db.cursor().executescript("attach \'" + TARGET + "\' as x; create table x.t (a)")',
    "attach off the class": "type(db).execute(db, 'attach ? as x', (TARGET,))",
    "attach by a name": "getattr(db, 'exec' + 'ute')('attach ? as x', (TARGET,))",
    "vacuum": "db.execute('vacuum into ?', (TARGET,))",
    "attach by pandas": "import pandas; pandas.read_sql_query('attach ? as x', db, params=(TARGET,))",
}


@pytest.mark.parametrize("source", ATTACHING.values(), ids=ATTACHING)
def test_a_connection_of_the_host_opens_no_other_file(source, tmp_path):
    db = sqlite3.connect(":memory:")
    policy = Policy.default()
    policy.module(db, name="db")
    if "pandas" in source:
        policy.module(
            pytest.importorskip("pandas", reason="pandas is not installed: its policy cannot be tried")
        )
    result = Sandbox(policy).exec(source, {"TARGET": str(tmp_path / "canary")})

    assert result.error is not None
    assert not list(tmp_path.iterdir())
    db.execute("attach ? as x", (str(tmp_path / "canary"),))


def test_a_connection_of_the_host_is_worked_with():
    db = sqlite3.connect(":memory:")
    policy = Policy.default()
    policy.module(db, name="db")
    result = Sandbox(policy).exec(
        "db.execute('create table t (a)'); db.executemany('insert into t values (?)', [(1,), (2,)]); db.commit()\n"
        "cursor = db.cursor(); cursor.execute('create temp table u as select a + ? as b from t', (1,))\n"
        "print(db.execute('select b from u').fetchall(), [row for row in cursor.execute('select a from t')])"
    )

    assert result.stdout == "[(2,), (3,)] [(1,), (2,)]\n"
