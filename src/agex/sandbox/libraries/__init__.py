"""Policies of well-known libraries, as commented data: one file or folder a library.

A `agex.sandbox.policy.library.Library` says which modules of a library are granted, which members of its
modules and objects are left out, which are handed out guarded, and why. `agex.sandbox.policy.catalog.find`
returns the policy for an import name. Nothing here imports the library it speaks of before guest code, or the
host, does; and nothing here opens a file.
"""

__all__: list[str] = []
