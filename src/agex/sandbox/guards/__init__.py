"""The sub-room guards."""

__all__: list[str] = []
