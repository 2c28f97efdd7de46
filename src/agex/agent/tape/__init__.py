"""Tapes: all that a run got from outside, in order, and runs that get it from there.

A run under a tape asks its model and calls the host by way of this room. While recording, the answers are
written down; in a replay they are read, and nothing of the host is called. Code cannot tell one from the
other. In order: `records` (the lines of a tape), `redaction`, `tape_file`, `tape_codec` (values),
`taped_objects` (stand-ins of registered things), `taped_run`, `recorder`, `player`, `current_tape`.
"""

__all__: list[str] = []
