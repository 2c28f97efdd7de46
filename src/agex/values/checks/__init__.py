"""The sub-room checks."""

__all__: list[str] = []
