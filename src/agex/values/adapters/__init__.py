"""The sub-room adapters."""

__all__: list[str] = []
