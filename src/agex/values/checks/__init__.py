"""Checks of a stream before it is loaded.

In reading order: `opcode_grammar` and `opcode_audit` (which opcodes, which lengths), `hash_cost` (the work of
hashing), `dry_run` (which calls). Each refuses a stream alone; none relies on another.

Nothing here makes a value or imports what a stream names.
"""

__all__: list[str] = []
