"""``ipaddress`` for guest code: the caches of the process hold plain values only.

The module caches the masks that it has computed, and the properties of addresses, for the whole process. An
address keeps the number that it is given and compares by it. With a number of a guest class it would be found
in the cache in place of a host's address.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from agex._interpreter.type_slots import namespace_of
from agex.sandbox.patches.replacement import replace
from agex.sandbox.patches.stdlib_caches import exact

__all__ = ["MEMBERS", "late_members"]

MEMBERS = (
    "AddressValueError", "IPV4LENGTH", "IPV6LENGTH", "IPv4Address", "IPv4Interface", "IPv4Network",
    "IPv6Address", "IPv6Interface", "IPv6Network", "NetmaskValueError", "collapse_addresses",
    "get_mixed_type_key", "ip_address", "ip_interface", "ip_network", "summarize_address_range",
    "v4_int_to_packed", "v6_int_to_packed",
)  # fmt: skip
"""The members of ``ipaddress``."""


@functools.cache
def late_members() -> dict[str, Any]:
    """Restrict the module to plain values, once a process; return its members for guest code."""
    import ipaddress

    module: Any = ipaddress
    for address in (module.IPv4Address, module.IPv6Address):
        replace(address, "__init__", _of_plain)
    for family in (module._BaseV4, module._BaseV6):
        family._make_netmask = classmethod(_of_plain_mask(family._make_netmask.__func__))
    classes = frozenset(each for each in vars(module).values() if isinstance(each, type))
    for class_ in classes:
        for name, member in list(namespace_of(class_).items()):
            if isinstance(member, property) and hasattr(member.fget, "cache_info"):
                setattr(class_, name, _remembering(member, classes))
    return {"collapse_addresses": _of_addresses(module)}


def _of_plain(real: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, address: Any) -> None:  # noqa: N807 - it stands for the one of the class
        found = exact(address)
        # It makes a text of any other object; one of a guest class may claim to be a number.
        real(self, found if _is_plain(found) else exact(str(found)))

    return __init__


def _of_plain_mask(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def make(cls: Any, arg: Any) -> Any:
        found = exact(arg)
        if not _is_plain(found):
            raise TypeError(f"a netmask must be a str or an int, got {type(arg).__name__}")
        return real(cls, found)

    return make


def _is_plain(value: Any) -> bool:
    return issubclass(type(value), (bytes, int, str))


def _remembering(real: property, classes: frozenset[type]) -> property:
    """Return a property that caches the addresses of the module's own classes only."""
    cached: Any = real.fget

    @functools.wraps(cached)
    def get(self: Any) -> Any:
        return (cached if type(self) in classes else cached.__wrapped__)(self)

    return property(get, doc=real.__doc__)


def _of_addresses(module: Any) -> Callable[..., Any]:
    @functools.wraps(module.collapse_addresses)
    def collapse_addresses(addresses: Iterable[Any]) -> Iterator[Any]:
        given = list(addresses)
        for each in given:  # the real function reads private names of every object
            if not issubclass(type(each), module._IPAddressBase):
                raise TypeError(f"{each!r} is not an address or a network")
        collapsed: Iterator[Any] = module.collapse_addresses(given)
        return collapsed

    return collapse_addresses
