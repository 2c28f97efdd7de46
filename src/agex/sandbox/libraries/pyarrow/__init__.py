"""The sub-room pyarrow."""

__all__: list[str] = []
