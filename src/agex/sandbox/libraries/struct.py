"""Policy of struct and io beside numpy: no raw bytes into arrays that hold references.

An object array exports its memory as a plain buffer. Bytes written into it become references to any address.
"""

from __future__ import annotations

import struct

from agex.sandbox.libraries.argument_checks import guarded, writable_buffer
from agex.sandbox.policy.library import Library, Replacements, less

__all__ = ["LIBRARIES"]


def _replace(files: bool) -> Replacements:
    return {"": {"pack_into": guarded(struct.pack_into, writable_buffer(1, "buffer"))}}


LIBRARIES = {
    "struct": Library(
        name="struct",
        modules={"": less()},
        guarded={"Struct.pack_into": writable_buffer(0, "buffer")},
        replace=_replace,
    ),
    "io": Library(
        name="io",
        guarded={
            "readinto": writable_buffer(0, "buffer"),
            "readinto1": writable_buffer(0, "buffer"),
        },
    ),
}
