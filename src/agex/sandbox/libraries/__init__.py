"""Policies of well-known libraries, as commented data.

A `agex.sandbox.policy.library.Library` lists the granted modules of a library, the members that are left out,
and those that are handed out guarded, with the reasons. Nothing here imports a library before guest code or
the host does, and nothing here opens a file. `agex.sandbox.policy.catalog` finds the policy for an import
name.

- `argument_checks`: guards that several libraries share: paths and streams, formats, functions by name;
- `process_settings`, `process_state`: settings of the process, put back when a run has changed them;
- one folder or module a library: `numpy`, `pandas`, `scipy`, `sklearn`, `matplotlib`, `pyarrow`, `sqlite`,
  `dateutil`, `jinja2`, `openpyxl`, `pathlib`, `pillow`, `plotly`, `polars`, `pydantic`, `struct`, `sympy`.
"""

__all__: list[str] = []
