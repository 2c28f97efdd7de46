"""pandas: `policy`, then tables made of `dataclass_rows`, and expressions of a `query`."""

__all__: list[str] = []
