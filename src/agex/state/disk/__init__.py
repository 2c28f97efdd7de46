"""A store in a directory: commits in SQLite rows, large content in pack files.

This room knows no variables, only keys and payloads. In order: `disk`, `directory`, `store_files`,
`database`, `readonly_database`, `schema`, `rows`, `refs`, `packs`, `row_journal`, `backup`, `recovery`,
`fsck`, `gc`.
"""

__all__: list[str] = []
