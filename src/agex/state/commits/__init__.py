"""Commits as bytes: the interface of every store of them, and the forms that all stores share.

This room knows no variables and opens no files. In order: the `journal` interface, `branches`, `history`,
`headers`, `digests`, `length_prefixed`, `draft_checks`, `codec_hooks`, `lru`.
"""

__all__: list[str] = []
