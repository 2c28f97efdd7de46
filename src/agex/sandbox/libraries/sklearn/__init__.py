"""The sub-room sklearn."""

__all__: list[str] = []
