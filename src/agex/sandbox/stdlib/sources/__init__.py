"""Sources of standard modules that are compiled as guest code, for `agex.sandbox.stdlib.source_modules`.

A text file is the guest's version of the module that it is named after, with ``_`` for each dot; the host
never runs it as code of its own. `own_sources` are modules of the interpreter whose own source can be
compiled so, `xml_etree` the one that needs a parser of the host beside it.
"""

__all__: list[str] = []
