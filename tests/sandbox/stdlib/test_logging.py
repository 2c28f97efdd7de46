"""``logging`` for guests: what a program logs is what Python prints, and the host's loggers are nobody's but the host's.

Stopped by: sandbox.stdlib.source_modules.
"""

from __future__ import annotations

import contextlib
import io
import logging

import pytest

from agex.errors import SandboxError
from agex.sandbox import Limits, Policy, Sandbox

HEAD = "import logging, sys\n"
FORMAT = "format='%(levelname)s|%(name)s|%(message)s'"
AS_IN_PYTHON = {
    "nothing is set up": "log = logging.getLogger(__name__)\nlog.debug('a')\nlog.info('b')\nlog.warning('c %d', 1)\nlog.error('d %s %s', 'x', [1])\nlog.critical('e')",
    "of the module": "logging.info('a')\nlogging.warning('b')\nlogging.error('c')\nlogging.log(35, 'd')\nlogging.debug('e')\nlogging.critical('f')",
    "the usual lines": f"logging.basicConfig(level=logging.INFO, {FORMAT})\nlogger = logging.getLogger(__name__)\nlogger.info('loaded %d rows', 3)\nlogger.debug('no')\nlogger.warning('slow: %.2f', 1.234)",
    "a level by its name": f"logging.basicConfig(level='DEBUG', {FORMAT})\nlogging.getLogger('a.b').debug('x')\nlogging.getLogger('a').setLevel('ERROR')\nlogging.getLogger('a.b').warning('no')\nprint(logging.getLogger('a.b').getEffectiveLevel(), logging.getLogger('a.b').isEnabledFor(logging.ERROR))",
    "an error with its lines": f"logging.basicConfig({FORMAT})\ndef f(x): return 1 / x\ntry: f(0)\nexcept ZeroDivisionError as error:\n  logging.exception('bad %s', 'x')\n  logging.error('again', exc_info=True)\n  logging.warning('once more', exc_info=error)\nlogging.error('none', exc_info=True)",
    "handlers of one's own": "class Lines(logging.Handler):\n  def __init__(self):\n    super().__init__(logging.INFO)\n    self.lines = []\n  def emit(self, record): self.lines.append((record.levelname, record.getMessage(), record.name))\nh = Lines()\nlog = logging.getLogger('x')\nlog.setLevel(logging.DEBUG)\nlog.addHandler(h)\nlog.addHandler(h)\nlog.propagate = False\nlog.info('a %s', 1)\nlog.debug('b')\nprint(h.lines, log.handlers == [h], log.hasHandlers(), h, log)\nlog.removeHandler(h)\nprint(log.handlers)",
    "what goes to the output": "log = logging.getLogger('x')\nlog.setLevel(logging.DEBUG)\nh = logging.StreamHandler(sys.stdout)\nh.setFormatter(logging.Formatter('[%(levelname)-8s] %(name)s: %(message)s'))\nlog.addHandler(h)\nif not log.handlers: raise Exception\nlog.debug('a')\nlog.info({'a': 1})\nlog.info('%(a)s', {'a': 1})\nprint(h.level, h.formatter._style is None)" .replace(", h.formatter._style is None", ""),
    "what goes into a text": "import io\nout = io.StringIO()\nlogging.basicConfig(stream=out, level=10, format='{levelname}:{message}', style='{')\nlogging.debug('x')\nprint(repr(out.getvalue()))",
    "styles": "for s, f in (('{', '{levelname:>8} {message}'), ('$', '$levelname ${message}'), ('%', '%(levelname)s')):\n  h = logging.StreamHandler(sys.stdout)\n  h.setFormatter(logging.Formatter(f, style=s))\n  log = logging.getLogger('l' + s)\n  log.addHandler(h)\n  log.propagate = False\n  log.warning('m')",
    "defaults": "h = logging.StreamHandler(sys.stdout)\nh.setFormatter(logging.Formatter('%(ip)s %(message)s', defaults={'ip': '-'}))\nlog = logging.getLogger('d')\nlog.addHandler(h)\nlog.propagate = False\nlog.warning('m')\nlog.warning('m', extra={'ip': '1'})",
    "times": "r = logging.LogRecord('n', 20, 'p', 1, 'm', (), None)\nr.created, r.msecs = 0.0, 5.0\nimport time\nf = logging.Formatter('%(asctime)s %(message)s')\nf.converter = time.gmtime\nprint(f.format(r))\nf = logging.Formatter('%(asctime)s %(message)s', '%Y/%m/%d')\nf.converter = time.gmtime\nprint(f.format(r))",
    "filters": f"logging.basicConfig({FORMAT})\nclass No(logging.Filter):\n  def filter(self, record): return 'no' not in record.getMessage()\nlog = logging.getLogger('f')\nlog.addFilter(No())\nlog.addFilter(lambda record: record.levelno > 30)\nlog.error('yes')\nlog.error('no')\nlog.warning('yes')\nh = logging.getLogger().handlers[0]\nh.addFilter(logging.Filter('a.b'))\nfor n in ('a', 'a.b', 'a.b.c', 'a.bc'): logging.getLogger(n).error('x')",
    "an adapter": f"logging.basicConfig({FORMAT})\nclass A(logging.LoggerAdapter):\n  def process(self, msg, kwargs): return f\"[{{self.extra['id']}}] {{msg}}\", kwargs\nA(logging.getLogger('a'), {{'id': 7}}).warning('x %s', 'y')\nlogging.LoggerAdapter(logging.getLogger('a'), {{'z': 1}}).error('y')",
    "more in a record": "logging.basicConfig(format='%(user)s %(message)s')\nlogging.warning('a', extra={'user': 'u'})\ntry: logging.warning('a', extra={'message': 1})\nexcept KeyError as e: print(e)",
    "where": "logging.basicConfig(format='%(funcName)s:%(lineno)d %(message)s')\ndef f():\n  logging.warning('a')\n  g()\ndef g(): logging.getLogger('x').error('b', stacklevel=2)\nf()\nlogging.getLogger('x').error('c')",
    "levels": "print([logging.getLevelName(x) for x in (10, 20, 35, 'WARN', 'x', logging.CRITICAL)], logging.FATAL, logging.NOTSET)\nlogging.addLevelName(25, 'NOTE')\nlogging.basicConfig(level=1)\nlogging.log(25, 'x')\nlogging.getLogger('z').setLevel('NOTE')\nprint(logging.getLogger('z'))\nfor level in ('no', 1.5):\n  try: logging.getLogger('z').setLevel(level)\n  except (ValueError, TypeError) as e: print(e)",
    "nothing below a level": "logging.disable(logging.WARNING)\nlogging.warning('a')\nlogging.error('b')\nlogging.disable(logging.NOTSET)\nlogging.warning('c')",
    "set up twice": f"logging.basicConfig({FORMAT})\nlogging.basicConfig(level=1)\nprint(logging.root.level, len(logging.root.handlers))\nlogging.basicConfig(level=logging.INFO, force=True, handlers=[logging.StreamHandler(sys.stdout), logging.NullHandler()])\nlogging.info('x')\nfor options in ({{'stream': 1, 'filename': 'x', 'force': True}}, {{'style': 'x', 'force': True}}):\n  try: logging.basicConfig(**options)\n  except ValueError: print('no')",
    "the tree": "c = logging.getLogger('a.b.c')\nprint(c.parent, c.parent is logging.root)\na = logging.getLogger('a')\nprint(c.parent is a, a.getChild('b.c') is c, logging.getLogger('a.b').parent is a, c.parent.name, logging.getLogger() is logging.root, logging.getLogger('root') is logging.root)",
    "a formatter of one's own": "import json\nclass J(logging.Formatter):\n  def format(self, record):\n    d = {'level': record.levelname, 'msg': record.getMessage()}\n    if record.exc_info: d['error'] = self.formatException(record.exc_info).splitlines()[-1]\n    return json.dumps(d)\nh = logging.StreamHandler()\nh.setFormatter(J())\nlogging.getLogger().addHandler(h)\nlogging.error('x')\ntry: {}['k']\nexcept KeyError: logging.exception('y')",
    "formats that are none": "for f, s in (('x', '%'), ('x', '{'), ('x', '$'), ('%(message)s', '!')):\n  try: logging.Formatter(f, style=s)\n  except ValueError as e: print('no')",
    "by its members": "from logging import getLogger, INFO, Formatter, StreamHandler, basicConfig\nbasicConfig(level=INFO)\ngetLogger('q').info('x')",
}  # fmt: skip


@contextlib.contextmanager
def fresh():
    """Have the host's logging be as if nobody had used it: pytest has."""
    root, manager = logging.Logger.root, logging.Logger.manager
    handlers, level, factory = root.handlers[:], root.level, logging.getLogRecordFactory()
    tables = (manager.loggerDict, logging._levelToName, logging._nameToLevel)
    before = [dict(table) for table in tables]
    root.handlers.clear()
    root.setLevel(logging.WARNING)
    manager.loggerDict.clear()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        for table, known in zip(tables, before, strict=True):
            table.clear()
            table.update(known)
        logging.setLoggerClass(logging.Logger)
        logging.setLogRecordFactory(factory)
        logging.disable(logging.NOTSET)


def without_source(text):
    return [line for line in text.splitlines() if not line.startswith("    ")]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("source", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_what_is_logged_is_what_python_logs(source, strict):
    result = Sandbox(Policy.default(strict=strict)).exec(HEAD + source)
    with fresh(), contextlib.redirect_stdout(io.StringIO()) as real, contextlib.redirect_stderr(real):
        exec(compile(HEAD + source, "<agent>", "exec"), {"__name__": "__main__"})

    assert result.error is None, result.traceback
    assert without_source(result.stdout) == without_source(real.getvalue())


CHANGES = {
    "the level": "logging.basicConfig(level=1)\nlogging.root.setLevel(1)",
    "handlers": "class H(logging.Handler):\n  def emit(self, record): seen.append(record)\nlogging.getLogger().addHandler(H())\nlogging.getLogger('service').addHandler(H())",
    "filters": "logging.getLogger('service').addFilter(lambda record: False)\nlogging.root.addFilter(lambda record: False)",
    "all of it": "logging.disable(100)",
    "names of levels": "logging.addLevelName(40, 'EVIL')",
    "methods": "logging.Logger.error = logging.Handler.handle = lambda *args, **kwargs: None",
    "defaults": "logging.Formatter.converter = logging.Formatter.default_time_format = None",
    "what it is told to do at its end": "logging.shutdown()",
}  # fmt: skip


@pytest.mark.parametrize("attack", CHANGES.values(), ids=CHANGES)
def test_the_loggers_of_the_host_are_as_they_were(attack):
    with fresh():
        service = logging.getLogger("service")
        service.addHandler(handler := logging.StreamHandler(io.StringIO()))
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        seen: list[object] = []
        session = Sandbox().session({"seen": seen})

        assert session.run(HEAD + attack).error is None
        service.error("after")

        assert handler.stream.getvalue() == "ERROR after\n"
        assert seen == []
        assert logging.root.handlers == []
        assert logging.root.level == logging.WARNING
        assert type(logging.getLogger("made")) is logging.Logger


def test_a_guest_sees_no_logger_and_no_record_of_the_host():
    with fresh():
        out = io.StringIO()
        logging.root.addHandler(logging.StreamHandler(out))
        logging.getLogger("secret.service").warning("before")

        result = Sandbox().exec(
            HEAD
            + "logging.error('guest')\nprint(len(logging.root.handlers), logging.getLogger('secret.service.x').parent)"
        )

        assert "1 <RootLogger root (WARNING)>" in result.stdout
        assert out.getvalue() == "before\n"


def test_each_session_has_loggers_of_its_own():
    sandbox = Sandbox()
    sandbox.exec(HEAD + "logging.root.setLevel(7)\nlogging.Handler.x = 1\nlogging.getLogger('a').y = 2")

    result = sandbox.exec(
        HEAD
        + "print(logging.root.level, hasattr(logging.Handler, 'x'), hasattr(logging.getLogger('a'), 'y'))"
    )

    assert result.stdout == "30 False False\n"


def test_a_session_has_one():
    session = Sandbox().session()
    session.run(HEAD + "logging.root.setLevel(7)")

    assert (
        session.run("import logging as again\nprint(again.root.level, again is logging)").stdout == "7 True\n"
    )


REFUSED = {
    "its globals": "logging.getLogger.__globals__",
    "its frames": "logging.Logger.findCaller.__code__",
    "what it imports": "logging.os",
    "threads": "logging.threading",
    "modules behind it": "logging.sys.meta_path",
    "its handlers": "logging._handlers",
    "its lock": "logging._lock",
    "a helper in its place": "logging.handled_error = len",
    "a switch": "logging.raiseExceptions = False",
    "the network": "import logging.handlers",
    "settings that name what is called": "import logging.config",
    "files of the host": "logging.FileHandler('/tmp/guest.log')",
    "by its settings": "logging.basicConfig(filename='/tmp/guest.log')",
    "warnings of libraries": "logging.captureWarnings(True)",
}


@pytest.mark.parametrize("attack", REFUSED.values(), ids=REFUSED)
def test_what_leads_further_is_not_there(attack):
    result = Sandbox().exec(HEAD + attack)

    assert isinstance(result.error, (SandboxError, NameError, ValueError, AttributeError)), result.stdout


def test_what_a_format_asks_for_and_nobody_knows_is_said() -> None:
    result = Sandbox().exec(
        HEAD + "logging.basicConfig(format='%(process)d %(message)s')\nlogging.error('x')"
    )

    assert "ValueError: Formatting field not found in record: 'process'" in result.stdout
    assert "Message: 'x'" in result.stdout


def test_an_error_that_the_host_handles_is_no_guests():
    kept: list[object] = []

    def host(callback):
        try:
            int("secret")
        except ValueError:
            callback()

    policy = Policy.default()
    policy.fn(host)
    session = Sandbox(policy).session({"kept": kept})
    result = session.run(
        HEAD + "host(lambda: kept.append(logging.handled_error()))\nhost(lambda: logging.exception('x'))"
    )

    assert result.error is None
    assert kept == [None]
    assert "secret" not in result.stdout


def test_where_it_is_called_names_no_place_of_the_host():
    policy = Policy.default()
    policy.fn(lambda callback: callback(), name="host")
    source = "logging.basicConfig(format='%(pathname)s %(funcName)s')\nhost(lambda: logging.error('x', stacklevel=100))"

    assert Sandbox(policy).exec(HEAD + source).stdout == "<agent> <module>\n"


def test_a_limit_ends_what_logs():
    result = Sandbox(limits=Limits(seconds=0.3)).exec(
        HEAD
        + "class H(logging.Handler):\n  def emit(self, r):\n    while True: pass\nlogging.root.addHandler(H())\ntry: logging.error('x')\nexcept BaseException: pass\nprint('on')"
    )

    assert "TimeoutError" in repr(result.error) or "TimeLimit" in type(result.error).__name__, result.error
    assert "on" not in result.stdout


@pytest.mark.parametrize("policy", [Policy, Policy.default])
def test_a_host_can_register_its_own(policy):
    given = policy()
    given.module(logging)

    assert Sandbox(given).exec("import logging\nx = logging.root").namespace["x"] is logging.root
