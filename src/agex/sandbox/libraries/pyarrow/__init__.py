"""pyarrow: `policy`, then `ipc`, the validation of tables in Arrow's own format."""

__all__: list[str] = []
