"""The sub-room stdlib."""

__all__: list[str] = []
