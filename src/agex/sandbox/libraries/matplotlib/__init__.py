"""The sub-room matplotlib."""

__all__: list[str] = []
