"""What guest code may do with well-known libraries, as commented data.

A ``library.Library`` says which modules of a library are granted, which members of its
modules and of its objects are left out, which are handed out in a guarded form, and why.
:func:`find` gives the policy for an import name. Nothing here imports the library it
speaks of before guest code, or the host, does; and nothing here opens a file.
"""

from agex.sandbox.policy.catalog import EVALUATING, OPEN_UNSEEN, find
from agex.sandbox.policy.library_grant import LibraryGrant, prepare

__all__ = ["EVALUATING", "OPEN_UNSEEN", "LibraryGrant", "find", "prepare"]
