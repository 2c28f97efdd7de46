"""scikit-learn: `policy`, then `model_checks` for compiled code that trusts the attributes of models."""

__all__: list[str] = []
