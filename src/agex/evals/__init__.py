"""Evaluations: the pass rate of a task or of any function, and its cost.

Cases are plain data, judges plain functions or tasks; a report is a table, and JSON. This room
knows no benchmark, prints nothing and reads no environment. It runs the subject in this process:
a judge has to run programs that an agent wrote where they can do no harm.

Reading order: ``case``, ``trial``, ``judges``, ``evaluation``, ``summary``, ``report``.
"""

from __future__ import annotations

from agex.evals.case import Case, read_cases
from agex.evals.evaluation import evaluate
from agex.evals.judges import Judge, Verdict, equals
from agex.evals.report import Report
from agex.evals.summary import Summary, wilson_interval
from agex.evals.trial import Outcome, Status, Subject, Trial, attempt

__all__ = [
    "Case",
    "Judge",
    "Outcome",
    "Report",
    "Status",
    "Subject",
    "Summary",
    "Trial",
    "Verdict",
    "attempt",
    "equals",
    "evaluate",
    "read_cases",
    "wilson_interval",
]
