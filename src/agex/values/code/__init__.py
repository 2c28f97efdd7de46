"""Guest functions and classes: kept as source and captured values, made again under the guards.

In reading order: `source` (cut a definition out of its program), `guest_classes` (facts about classes),
`earlier_values`, `stream_markers`, `capture` (take apart) with `callables`; `instance_builder` and
`reconstructor` (make again); `outline` (show without running).

It never compiles or runs guest code itself: the sandbox does, through `GuestCode`.
"""

__all__: list[str] = []
