"""Texts that are taken apart, quoted and signed: what the process remembers of them is of no guest's making.

Stopped by: sandbox.stdlib.plain_values.
"""

from __future__ import annotations

import fnmatch
import hmac
import io
import urllib.parse

import pytest

from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox

AS_IN_PYTHON = {
    "an address in parts": "from urllib.parse import urlparse\nu = urlparse('https://me@example.org:81/a;b?c=d#e')\nprint(u, u.hostname, u.port, u.username, u.geturl(), u._replace(netloc='b'))",
    "the module by its full name": "import urllib.parse\nprint(urllib.parse.urlsplit(b'//a/b').netloc, urllib.parse.quote('a b/\\u00e4'))",
    "the module out of its package": "from urllib import parse\nprint(parse.unquote('%C3%A4+b'), parse.unquote_plus('a+b'), parse.unquote_to_bytes('%00'))",
    "a query": "from urllib.parse import parse_qs, parse_qsl\nprint(parse_qs('a=1&a=2&b='), parse_qsl('a=1&b=', keep_blank_values=True))",
    "a query is made": "from urllib.parse import urlencode, quote\nprint(urlencode({'a': 1, 'b c': 'd&'}), urlencode([('a', [1, 'x y'])], doseq=True, quote_via=quote), urlencode({b'a': b'\\xff'}))",
    "of a mapping of one's own": "from urllib.parse import urlencode\nclass M(dict):\n  def items(self): return [('a', 'b')]\nprint(urlencode(M()))",
    "no query": "from urllib.parse import urlencode\ntry: urlencode('abc')\nexcept TypeError as e: print(e)",
    "addresses are joined": "from urllib.parse import urljoin, urldefrag, urlunsplit\nprint(urljoin('http://a/b/c', '../d'), urldefrag('a#b'), urlunsplit(('http', 'a', '/b', 'c=d', '')))",
    "no text": "from urllib.parse import quote, urlparse\nfor f in (quote, urlparse):\n  for x in (5, [1]):\n    try: f(x)\n    except (TypeError, AttributeError) as e: print('no')",
    "a text of one's own class": "from urllib.parse import quote, urlparse\nclass S(str): pass\nprint(quote(S('a b')), urlparse(S('http://a/b')).path)",
    "a subclass of a result": "from urllib.parse import SplitResult\nclass R(SplitResult):\n  def geturl(self): return super().geturl().upper()\nprint(R('http', 'a', '', '', '').geturl())",
    "keywords": "import keyword\nprint(keyword.iskeyword('if'), keyword.issoftkeyword('match'), 'for' in keyword.kwlist)",
    "numbers of errors": "import errno\nprint(errno.ENOENT, errno.errorcode[errno.ENOENT])\ntry: raise OSError(errno.EPERM, 'x')\nexcept PermissionError as e: print(e.errno == errno.EPERM)",
    "a message is signed": "import hmac, hashlib\nprint(hmac.new(b'k', b'm', hashlib.sha256).hexdigest(), hmac.new(b'k', b'm', 'md5').digest(), hmac.digest(b'k', b'm', 'sha1'), hmac.compare_digest('a', 'a'))\nh = hmac.new(b'k', digestmod='sha256')\nh.update(b'm')\nprint(h.copy().hexdigest(), h.name, h.digest_size)",
    "patterns of names": "import fnmatch\nclass S(str): pass\nprint(fnmatch.fnmatch('a.txt', '*.t?t'), fnmatch.fnmatchcase('A', 'a'), fnmatch.filter(['a.py', 'b.c', 'd.py'], '*.py'), fnmatch.filter((n for n in ('x', 'y')), '[!x]'), fnmatch.translate('a*[bc]?'))\nprint(fnmatch.fnmatch(S('ab'), S('a*')), [type(n).__name__ for n in fnmatch.filter([S('ab')], S('*'))], fnmatch.filter([b'a', b'b'], b'a'))\nfor f, a in ((fnmatch.fnmatchcase, (1, '*')), (fnmatch.filter, (['a', 1], '*'))):\n  try: f(*a)\n  except TypeError as e: print('no')",
    "settings": "import tomllib\ntext = 'a = 1\\nb = [1.5, 2.25]\\n[c.d]\\ne = 2024-01-02T03:04:05+01:00\\nf = \"\u00e4\"\\n[[g]]\\nh = true'\nfound = tomllib.loads(text)\nprint(found, found['c']['d']['e'].utcoffset())\nfrom decimal import Decimal\nclass S(str): pass\nprint(tomllib.loads(S(text), parse_float=Decimal)['b'])\ntry: tomllib.loads('a = ')\nexcept tomllib.TOMLDecodeError as e: print(e, isinstance(e, ValueError))\ntry: tomllib.loads(b'a = 1')\nexcept TypeError as e: print('no')",
    "a line of a shell": "import shlex\nprint(shlex.split('a \"b c\" d\\\\ e'), shlex.split('a # b', comments=True), shlex.quote('a b'), shlex.join(['a', 'b c']))\ntry: shlex.split('\"a')\nexcept ValueError as e: print(e)",
    "what is packed": "import gzip, bz2, lzma, zlib\nfor m in (gzip, bz2, lzma, zlib):\n  for d in (b'abc' * 99, bytearray(b'x'), memoryview(b'y'), b''): print(m.decompress(m.compress(d)))\nprint(gzip.compress(b'a', mtime=0), gzip.compress(b'a', 9, mtime=0), bz2.compress(b'a', 1), len(lzma.compress(b'a', preset=1)))\nfor m, e in ((gzip, gzip.BadGzipFile), (bz2, OSError), (lzma, lzma.LZMAError)):\n  try: m.decompress(b'not packed')\n  except e as error: print(error)\n  try: m.compress('text')\n  except TypeError as error: print('no')",
    "names and dates of mails": "from email.utils import *\nfrom email import utils\nimport datetime as dt\nprint(parseaddr('A B <a@b.c>'), formataddr(('A, B', 'a@b.c')), formataddr(('\u00e4', 'a@b.c')), formataddr((None, 'a@b.c')), utils.parsedate_to_datetime('Mon, 20 Nov 1995 19:12:08 -0500'), parsedate('Mon, 20 Nov 1995 19:12:08'), formatdate(0), utils.format_datetime(dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc), usegmt=True))\ntry: utils.parsedate_to_datetime('x')\nexcept ValueError as e: print('no')",
}  # fmt: skip


@pytest.mark.parametrize("source", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_what_is_made_of_a_text_is_what_python_makes(source, native):
    result = Sandbox().exec(source)

    assert result.error is None, result.traceback
    assert result.stdout == native(source)


LIAR = (
    "import urllib.parse as p\n"
    "class N(int):\n  def __hash__(self): return hash(65)\n  def __eq__(self, o): return True\n"
    "  def __format__(self, s): return 'EVIL'\n"
    "class B(bytes):\n  def __iter__(self): return iter([N(7)])\n  def rstrip(self, *a): return b'x'\n"
    "  def __hash__(self): return hash(b'/')\n  def __eq__(self, o): return True\n"
    "class M(type):\n  def __hash__(c): return hash(str)\n  def __eq__(c, o): return True\n"
    "class S(str, metaclass=M):\n  def __hash__(self): return hash('http://a/b')\n  def __eq__(self, o): return True\n"
    "  def encode(self, *a): return B(b'A')\n  def __str__(self): return self\n"
    "class O:\n  pass\n  def encode(self, *a): return B(b'A')\n  def rstrip(self, *a): return b''\n"
    "  def __hash__(self): return hash('http://a/b')\n  def __eq__(self, o): return True\n"
)
REMEMBERED = {
    "a text": "p.urlsplit(S('evil://b/c'))",
    "a scheme": "p.urlsplit('http://a/b', S('x'))",
    "no text": "p.urlsplit(O())",
    "a flag": "p.urlsplit('http://a/b', '', O())",
    "bytes to quote": "p.quote_from_bytes(B(b'A'))",
    "what encodes itself": "p.quote(S('A'))",
    "what says that it is a text": "p.quote(O())",
    "what is left as it is": "p.quote('A', S('/'))",
    "bytes that are": "p.quote_from_bytes(b'A', B(b'/'))",
    "in a query": "p.urlencode({S('A'): S('A')})",
    "in a list of a query": "p.urlencode([('a', [S('A'), O()])], True, S('/'))",
    "joined": "p.urljoin(S('evil://b/c'), S('d'))",
    "a query that is taken apart": "p.parse_qs(S('a=b'), max_num_fields=N(3))",
    "a pattern": "import fnmatch\nfnmatch.fnmatchcase('a', S('*.evil'))",
    "a pattern of what goes through": "import fnmatch\nfnmatch.filter(['a'], S('*.evil'))",
    "a result": "p.SplitResult(S('a'), S('b'), S('c'), '', '').geturl()",
}


@pytest.mark.parametrize("attack", REMEMBERED.values(), ids=REMEMBERED)
def test_the_process_remembers_no_text_of_a_guest(attack):
    urllib.parse.clear_cache()
    fnmatch._compile_pattern.cache_clear()  # type: ignore[attr-defined]

    assert Sandbox().exec(f"{LIAR}ready = True\n{attack}").namespace.get("ready")

    assert urllib.parse.urlsplit("http://a/b").geturl() == "http://a/b"
    assert urllib.parse.quote("A/ \x07") == "A/%20%07"
    assert urllib.parse.quote_from_bytes(b"A/") == "A/"
    assert fnmatch.fnmatchcase("http://a/b", "http://a/b")  # which the guest's text says that it is


class Vault:
    def __init__(self) -> None:
        self._hmac = self._inner = self
        self.asked: list[str] = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def ask(*args, **kwargs):
            self.asked.append(name)
            return b""

        return ask


READ = {
    "a vault that signs": "import hmac\nhmac.new(b'k', b'm', vault)",
    "its method": "import hmac\nhmac.digest(b'k', b'm', vault)",
    "a method of what signs": "import hmac\ntype(hmac.new(b'k', b'm', 'md5')).update(vault, b'x')",
    "another": "import hmac\ntype(hmac.new(b'k', b'm', 'md5')).hexdigest(vault)",
    "a copy": "import hmac\ntype(hmac.new(b'k', b'm', 'md5')).copy(vault)",
    "a vault that is read": "import shlex\nshlex.split(vault)",
    "a vault that is a query": "from urllib.parse import urlencode\nurlencode(vault)",
    "an address": "from urllib.parse import urlsplit\nurlsplit(vault)",
    "an address of a mail": "from email.utils import parseaddr\nparseaddr(vault)",
    "parts of one": "from email.utils import formataddr\nformataddr(('a', vault))",
    "how one is written": "from email.utils import formataddr\nformataddr(('\u00e4', 'a@b'), vault)",
    "a date of a mail": "from email.utils import format_datetime\nformat_datetime(vault)",
    "bytes that are packed": "import gzip\ngzip.compress(vault)",
    "bytes that are unpacked": "import gzip\ngzip.decompress(vault)",
}


@pytest.mark.parametrize("attack", READ.values(), ids=READ)
def test_no_method_of_what_is_no_text_is_called(attack):
    vault = Vault()
    policy = Policy.default(strict=True)
    policy.cls(Vault, include=())

    result = Sandbox(policy).session({"vault": vault}).run(attack)

    assert result.error is not None
    assert vault.asked == []


def test_the_stream_of_the_host_is_not_read(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("secret"))

    assert isinstance(Sandbox().exec("import shlex\nshlex.split(None)").error, ValueError)


@pytest.mark.parametrize(
    "name",
    [
        "urllib",
        "urllib.request",
        "urllib.error",
        "shlex.shlex",
        "hmac.HMAC",
        "gzip.open",
        "gzip.GzipFile",
        "bz2.BZ2File",
        "lzma.open",
        "email.generator",
        "email.utils.make_msgid",
        "email.utils.socket",
    ],
)
def test_what_works_on_streams_and_networks_is_not_there(name):
    package, _, member = name.rpartition(".")
    source = (
        f"import {name}"
        if package in ("", "urllib") or name == "email.generator"
        else f"from {package} import {member}"
    )

    assert isinstance(Sandbox().exec(source).error, SandboxError)


def test_tables_are_the_session_s_own():
    Sandbox().exec("import keyword, errno\nkeyword.kwlist.clear()\nerrno.errorcode.clear()")

    assert Sandbox().exec("import keyword, errno\nx = len(keyword.kwlist), len(errno.errorcode)").namespace[
        "x"
    ] > (30, 30)


def test_what_a_guest_signs_the_host_can_verify():
    made = Sandbox().exec("import hmac\nx = hmac.new(b'k', b'm', 'sha256').digest()").namespace["x"]

    assert hmac.compare_digest(made, hmac.digest(b"k", b"m", "sha256"))
