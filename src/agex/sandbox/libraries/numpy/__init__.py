"""numpy: `policy`, then `random` for each session, and guards of `read_only_arrays`."""

__all__: list[str] = []
