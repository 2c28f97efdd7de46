"""A typed signature as inputs and a checked result.

This room reads a task's signature, checks what goes in and what comes out against its
annotations at full depth, and reads the examples that bind it. It never runs guest code,
never asks a model, and never imports numpy, pandas or plotly: it looks at values of theirs
only when somebody else has imported them.

Reading order: ``signature`` (inputs and result), ``annotations`` and ``checker`` (an annotation becomes a
check), the checks themselves (``scalars``, ``containers``, ``unions``, ``records`` with ``fields``,
``constraints``, ``frame_schemas``), ``walk`` and ``mismatch`` (one pass over a value and its errors).
``real_types`` and ``plain_values`` read values past the code of guest classes; ``preview`` and ``host_repr``
write them out. ``definitions`` writes out the classes that a signature names. ``examples`` and ``equality``
are for the examples that bind a task, ``body`` for the empty function.
"""

from agex.contract.annotation_names import annotation_names, is_record
from agex.contract.annotations import Unresolved
from agex.contract.checker import Checker
from agex.contract.definitions import (
    class_definition,
    class_head,
    class_methods,
    columns_text,
    definitions,
    function_records,
    named_records,
    own_doc,
    schemas,
)
from agex.contract.equality import same_value
from agex.contract.examples import (
    Example,
    describe_failure,
    doc_examples,
    given_examples,
    got_instead,
    outcome_matches,
    shown_repr,
)
from agex.contract.frame_schemas import SchemaCheck, is_schema
from agex.contract.host_repr import holds_guests
from agex.contract.mismatch import ContractError
from agex.contract.preview import preview, short_repr
from agex.contract.signature import TaskSignature

__all__ = [
    "Checker",
    "ContractError",
    "Example",
    "SchemaCheck",
    "TaskSignature",
    "Unresolved",
    "annotation_names",
    "class_definition",
    "class_head",
    "class_methods",
    "columns_text",
    "definitions",
    "describe_failure",
    "doc_examples",
    "function_records",
    "given_examples",
    "got_instead",
    "holds_guests",
    "is_record",
    "is_schema",
    "named_records",
    "outcome_matches",
    "own_doc",
    "preview",
    "same_value",
    "schemas",
    "short_repr",
    "shown_repr",
]
