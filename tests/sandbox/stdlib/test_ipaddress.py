"""``ipaddress``: everyday programs as in Python, and caches in which the host finds nothing of a guest's.

Stopped by: sandbox.stdlib.ipaddress.
"""

from __future__ import annotations

import gc
import ipaddress
import weakref

import pytest

from agex.errors import SandboxError
from agex.sandbox import Policy, Sandbox

AS_IN_PYTHON = {
    "addresses": "import ipaddress\na = ipaddress.ip_address('192.168.0.7')\nprint(a, repr(a), int(a), a.version, a.is_private, a.is_loopback, a.packed, a.reverse_pointer, a + 1, f'{a:b}')",
    "of the sixth version": "from ipaddress import ip_address, IPv6Address\na = ip_address('2001:db8::1')\nprint(a.exploded, a.compressed, a.is_global, a.is_link_local, IPv6Address('fe80::1%eth0').scope_id, IPv6Address('::ffff:1.2.3.4').ipv4_mapped)",
    "networks": "import ipaddress\nn = ipaddress.ip_network('10.1.0.0/29')\nprint(n, n.num_addresses, n.netmask, n.hostmask, n.broadcast_address, n.prefixlen, [str(h) for h in n.hosts()], ipaddress.ip_address('10.1.0.3') in n, n.is_private)",
    "below and above": "import ipaddress\nn = ipaddress.ip_network('10.0.0.0/22')\nprint(list(n.subnets(new_prefix=24)), n.supernet(), list(n.address_exclude(ipaddress.ip_network('10.0.1.0/24'))), n.overlaps(ipaddress.ip_network('10.0.0.0/8')), n.subnet_of(ipaddress.ip_network('10.0.0.0/8')), n[5], n[-1])",
    "masks": "from ipaddress import IPv4Network, IPv4Interface\nprint(IPv4Network('10.0.0.0/255.0.0.0'), IPv4Network(('10.0.0.0', 8)), IPv4Network(('10.0.0.0', '255.0.0.0')), IPv4Network('10.0.0.1/8', strict=False), IPv4Interface('10.0.0.5/24').network)",
    "an interface": "import ipaddress\ni = ipaddress.ip_interface('192.0.2.5/24')\nprint(i.ip, i.network, i.with_netmask, i.with_prefixlen, i == ipaddress.ip_interface('192.0.2.5/24'))",
    "collapsed": "import ipaddress\nprint(list(ipaddress.collapse_addresses(ipaddress.ip_network(t) for t in ('192.0.2.0/25', '192.0.2.128/25', '10.0.0.1/32'))), list(ipaddress.summarize_address_range(ipaddress.ip_address('192.0.2.0'), ipaddress.ip_address('192.0.2.130'))))",
    "sorted, counted, kept": "import ipaddress\nfrom collections import Counter\nips = [ipaddress.ip_address(t) for t in ('10.0.0.2', '9.1.1.1', '10.0.0.2')]\nprint(sorted(ips), Counter(ips), {ips[0]: 'x'}, max(ips), ips[0] == ips[2], sorted([*ips, ipaddress.ip_network('9.0.0.0/8')], key=ipaddress.get_mixed_type_key))",
    "errors": "import ipaddress\nfor t in ('300.1.1.1', '1.2.3', 'x', '', '10.0.0.1/8', '1.2.3.4/33', None, 1.5, -1, 2**130, b'abc'):\n  for f in (ipaddress.ip_address, ipaddress.ip_network, ipaddress.IPv4Address, ipaddress.IPv6Address):\n    try: print(f(t))\n    except ValueError as e: print(type(e).__name__, e)",
    "classes of one's own": "import ipaddress\nclass Host(ipaddress.IPv4Address):\n  def __init__(self, text, name):\n    super().__init__(text)\n    self.name = name\n  def __str__(self): return self.name + '=' + super().__str__()\nh = Host('10.0.0.1', 'a')\nprint(h, h.is_private, h.is_global, h.name, isinstance(h, ipaddress.IPv4Address), h == ipaddress.ip_address('10.0.0.1'))\nclass S(str): pass\nclass N(int): pass\nprint(ipaddress.ip_address(S('1.2.3.4')), ipaddress.ip_address(N(5)), ipaddress.IPv4Network((S('10.0.0.0'), N(8))))",
}  # fmt: skip


@pytest.mark.parametrize("source", AS_IN_PYTHON.values(), ids=AS_IN_PYTHON)
def test_addresses_are_what_they_are_in_python(source, native):
    result = Sandbox().exec(source)

    assert result.error is None, result.traceback
    assert result.stdout == native(source)


LIAR = """
import ipaddress as p
class N(int):
    def __hash__(self): return hash(8)
    def __eq__(self, other): return True
    def __lt__(self, other): return False
    __gt__ = __lt__
    def __and__(self, other): return self
    __rand__ = __and__
class S(str):
    def __hash__(self): return hash('8')
    def __eq__(self, other): return True
    def __str__(self): return self
    def split(self, *args): return self, self
class O:
    def __getattribute__(self, name):
        return int if name == '__class__' else object.__getattribute__(self, name)
    def __hash__(self): return hash(8)
    def __eq__(self, other): return True
    def __index__(self): return N(24)
    __int__ = __index__
    def __str__(self): return S('10.0.0.0')
    def isascii(self): return True
    isdigit = isascii
"""
REMEMBERED = {
    "a number as a mask": "p.IPv4Network(('10.0.0.0', N(24)))",
    "a text as a mask": "p.IPv4Network(('10.0.0.0', S('24')))",
    "of the sixth version": "p.IPv6Network(('::', N(24)))",
    "an object as a mask": "p.IPv4Network(('10.0.0.0', O()))",
    "of an interface": "p.IPv4Interface(('10.0.0.0', S('24')))",
    "of a network below": "list(p.ip_network('10.0.0.0/23').subnets(new_prefix=N(24)))",
    "of a network above": "p.ip_network('10.0.0.0/25').supernet(new_prefix=N(24))",
    "a text": "p.IPv4Network(S('10.0.0.0/24'))",
    "a network of one's own": "class W(p.IPv4Network):\n  @classmethod\n  def _split_addr_prefix(cls, address): return 0, S('24')\nW('10.0.0.0')",
    "a tuple of one's own": "class T(tuple):\n  def __iter__(self): return iter((0, N(24)))\np.IPv4Network(T(('10.0.0.0', N(24))))",
    "a number as an address": "p.IPv4Address(N(134744072)).is_private",
    "what says that it is a number": "p.IPv4Address(O()).is_private",
    "a sum": "class M(N):\n  def __radd__(self, other): return N(134744072)\n(p.IPv4Address(1) + M(1)).is_private",
    "an address of one's own": "class A(p.IPv4Address):\n  def __hash__(self): return hash(p.ip_address('8.8.8.8'))\n  def __eq__(self, other): return True\n  is_link_local = True\n[getattr(A('127.0.0.1'), n) for n in ('is_private', 'is_global', 'is_reserved')]",
    "what an error says": "p.IPv4Network(ValueError(S('10.0.0.0/24')))",
    "what the host's class is given": "class A(p.IPv4Address):\n  def __init__(self): super().__init__(N(134744072))\n  def __hash__(self): return hash(p.ip_address('8.8.8.8'))\nA().is_private",
}


def forget():
    for family in (ipaddress.IPv4Network, ipaddress.IPv6Network):
        family._netmask_cache.clear()  # type: ignore[attr-defined]
    for address in (ipaddress.IPv4Address, ipaddress.IPv6Address):
        for name in ("is_private", "is_global", "is_reserved"):
            found = getattr(address, name).fget
            while hasattr(found, "__wrapped__"):
                getattr(found, "cache_clear", int)()
                found = found.__wrapped__


@pytest.mark.parametrize("attack", REMEMBERED.values(), ids=REMEMBERED)
def test_the_process_remembers_no_address_of_a_guest(attack):
    forget()

    result = Sandbox().exec(
        f"{LIAR}ready = True\nwatched = O()\ntry:\n  {attack.replace(chr(10), chr(10) + '  ')}\nexcept Exception: pass"
    )
    assert result.error is None, result.traceback
    guest = weakref.ref(result.namespace["watched"])
    del result
    gc.collect()

    assert guest() is None  # a key or an address would hold its class, and that its module
    assert ipaddress.ip_network("10.0.0.0/8").prefixlen == 8
    assert ipaddress.ip_network("::/8").prefixlen == 8
    assert ipaddress.ip_network("10.0.0.0/24").num_addresses == 256
    assert not ipaddress.ip_address("8.8.8.8").is_private
    assert ipaddress.ip_address("8.8.8.8").is_global
    for cache in (ipaddress.IPv4Network._netmask_cache, ipaddress.IPv6Network._netmask_cache):  # type: ignore[attr-defined]
        assert {type(key) for key in cache} <= {int, str}


class Vault:
    def __init__(self) -> None:
        self._prefixlen = self._max_prefixlen = 1
        self._version = 4
        self.asked: list[str] = []

    @property
    def ip(self) -> object:
        self.asked.append("ip")
        return ipaddress.ip_address("1.1.1.1")


REFUSED = {
    "what remembers": "ipaddress.IPv4Network._netmask_cache.clear()",
    "what is known of private networks": "ipaddress.IPv4Address._constants",
    "a property": "ipaddress.IPv4Address.is_private.fget",
    "a property in its place": "ipaddress.IPv4Address.is_private = True",
    "of the host's address": "given.is_private = True",
    "its number": "given._ip = 5",
    "its number by its slot": "ipaddress.IPv4Address.__dict__['_ip']",
    "made anew": "given.__init__('1.1.1.1')",
    "made anew by its class": "ipaddress.IPv4Address.__init__(given, '1.1.1.1')",
    "a network's address": "ipaddress.ip_network('10.0.0.0/8').network_address = given",
    "its globals": "ipaddress.ip_address.__globals__",
    "a module": "ipaddress.functools",
    "how it is pickled": "given.__reduce__()",
    "a vault is collapsed": "list(ipaddress.collapse_addresses([vault]))",
}


@pytest.mark.parametrize("attack", REFUSED.values(), ids=REFUSED)
def test_nothing_is_changed_and_no_vault_is_asked(attack):
    vault, given = Vault(), ipaddress.ip_address("10.0.0.1")
    policy = Policy.default(strict=True)
    policy.cls(Vault, include=())

    result = Sandbox(policy).session({"vault": vault, "given": given}).run(f"import ipaddress\n{attack}")

    assert isinstance(result.error, (SandboxError, TypeError, AttributeError)), result.value
    assert vault.asked == []
    assert str(given) == "10.0.0.1"
    assert given.is_private
