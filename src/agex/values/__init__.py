"""Codec of values that are stored or cross a process border: values to bytes and back.

Variables become groups of bytes (`encode`), of which a fingerprint tells whether the live objects
changed (`fingerprint`), which are cut into chunks that a store keeps (`cut`, `from_recipe`) and made
again (`decode`), with nothing called that is not on a list. Guest functions and classes are kept as source.

In reading order: `base` (types that all share), `adapters` (one library or type each), `code` (guest
functions and classes), `checks` (of a stream, before it is loaded); then `type_registry`, `encoder`,
`decoder`, and on top `packed_variables`, `looks` and `diff`.

It never imports numpy, pandas or their like: their values are handled when they come by. It knows
nothing of agents, sandboxes and stores.
"""

from agex.values.base.allowlist import Allow
from agex.values.base.fingerprint import Fingerprint, fingerprint
from agex.values.base.group import BLOCK, Group, Lost
from agex.values.base.guest_code import ForwardedCode, GuestCode, SealingCode
from agex.values.base.placeholders import NotKept, not_kept_error, stand_in
from agex.values.base.recipe import Cut, Recipe, cut, from_recipe, put_together, read_recipe
from agex.values.base.type_checks import type_name
from agex.values.code.outline import Sketch
from agex.values.decoder import decode
from agex.values.diff import diff_values, show_value
from agex.values.encoder import encode
from agex.values.looks import Looks
from agex.values.packed_variables import Packed, copied, frozen, opened, packed_groups, sketched

__all__ = [
    "BLOCK",
    "Allow",
    "Cut",
    "Fingerprint",
    "ForwardedCode",
    "Group",
    "GuestCode",
    "Looks",
    "Lost",
    "NotKept",
    "Packed",
    "Recipe",
    "SealingCode",
    "Sketch",
    "copied",
    "cut",
    "decode",
    "diff_values",
    "encode",
    "fingerprint",
    "from_recipe",
    "frozen",
    "not_kept_error",
    "opened",
    "packed_groups",
    "put_together",
    "read_recipe",
    "show_value",
    "sketched",
    "stand_in",
    "type_name",
]
