"""How many modules a reader passes through who follows one call."""
