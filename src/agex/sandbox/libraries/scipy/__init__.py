"""The sub-room scipy."""

__all__: list[str] = []
