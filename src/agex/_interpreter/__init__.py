"""Facts of CPython that several rooms build on: type slots, typed arrays, threads, syntax trees.

It knows nothing of guest code, and no other room of the package.
"""

__all__: list[str] = []
