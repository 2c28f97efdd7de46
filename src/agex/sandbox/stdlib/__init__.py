"""Modules of the standard library as guest code imports them: the grants, and the members that are replaced.

A module here is named as the one that it stands in for. What it replaces would read attributes by name, write
to host objects, cache guest objects for the process, or crash in C. This room never changes the real modules,
which is what `agex.sandbox.patches` is for, except where a guest holds real objects of them.

Read `standard_set` first: the table of modules, with the members left out and replaced. Then

- `builtins`, `operator`, `string_format`, `generic_alias`: attributes, formats and aliases through guards;
- `decorators`, `functools`, `contextlib`, `abc`, `typing`: functions that write to their argument, or read
  its annotations;
- `dataclasses`, `dataclass_fields`, `copy`: objects taken apart and made again;
- `itertools`, `queue`, `asyncio_tasks`: iterators, waiting and tasks within the limits of a run;
- `plain_values`, `struct`, `ipaddress`, `datetime`, `random`: values and formats that C code and caches
  trust;
- `sys_streams`, `traceback`, `warnings`: output and errors of a run;
- `source_modules`, `weakref`: modules whose source is compiled as guest code; `sources` has their texts.
"""

__all__: list[str] = []
