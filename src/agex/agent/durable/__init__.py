"""Runs that survive: what a run needs to go on, and the journal of its calls to the world.

A call of an external function is journalled before it is made, and its result before guest code sees it. A
run that is resumed runs its half-done action again, from the beginning, and is given the recorded results.
This room never drives a run and asks no model. In order: `records` (what is written), `host_calls` (a call
as a person judges it), `run_journal` (one run), `external_functions` (what guest code gets), `listing`.
"""

__all__: list[str] = []
