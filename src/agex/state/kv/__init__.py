"""Stores of bytes, and commits in any of them.

`KVStore` is the interface to implement for a database of your own; ``agex.testing.check_kvstore`` proves
one. In order: the interface (`store`), stores in this process (`memory`, `cache`), and the parts of a history
in any store: content-addressed `objects`, the tree of keys (`keytree`), the `kv_journal`, writers beside a
collector (`pins`), `fsck` and `gc`.
"""

from __future__ import annotations

from agex.state.kv.store import KVStore

__all__ = ["KVStore"]
