"""How values, outputs and pictures look: to a model as text and images, to a person on a page.

Everything here is bounded in size. This room never decides when something is shown. In order: `output_text`,
`images`, `figure_view`, `value_view`.
"""

__all__: list[str] = []
