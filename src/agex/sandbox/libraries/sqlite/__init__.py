"""sqlite3: `policy`, then `connections` that stay valid, and `attributes` set on connections of the host."""

__all__: list[str] = []
