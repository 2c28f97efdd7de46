"""The texts that a model is given before it answers: rules, task and listings.

Texts are byte-stable within a task, so that providers can cache them. This room never asks a model and never
runs code. In order: `prompt` for large models, `completion` for small ones, `listing` with `library_names`,
`skills`, `compaction`.
"""

__all__: list[str] = []
