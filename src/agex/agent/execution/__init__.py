"""The sub-room execution."""

__all__: list[str] = []
