"""The sub-room commits."""

__all__: list[str] = []
