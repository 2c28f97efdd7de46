"""Flags of code objects, the same as in ``inspect``, which takes longer to import than this whole room."""

CO_OPTIMIZED = 0x1
CO_GENERATOR = 0x20
CO_COROUTINE = 0x80
CO_ASYNC_GENERATOR = 0x200
