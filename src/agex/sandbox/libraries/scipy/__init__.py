"""scipy: `policy`, then `function_guards` for compiled code that trusts its arguments."""

__all__: list[str] = []
