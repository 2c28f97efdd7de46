"""Types and checks that every other part of the codec builds on.

In reading order: `group` (the unit that is encoded), `fingerprint` and `recipe` (whether it changed, how it
is stored), `allowlist`, `guest_code` (what the sandbox provides), `handle`, `placeholders`, `type_checks`,
`function_wrappers`, `shared_objects`, `object_paths`, `decode_budget`, `stream_names`.

It never imports a library of values and never knows how one type is encoded.
"""

__all__: list[str] = []
