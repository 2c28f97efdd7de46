"""matplotlib: `policy`, then checks of `artists`, the `figures` of a session, and `shared_arrays`."""

__all__: list[str] = []
