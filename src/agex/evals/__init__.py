"""Evaluations: how often a task, or any function, does what it should, and what that takes.

Cases are plain data, judges plain functions or tasks; a report is a table, and JSON. This room
knows no benchmark, prints nothing and reads no environment. It runs what it is given in this
process: programs that an agent wrote are for a judge to run where they can do no harm.
"""

from __future__ import annotations

from agex.evals.case import Case, read_cases
from agex.evals.evaluation import evaluate
from agex.evals.interval import wilson_interval
from agex.evals.judging import Judge, Verdict, equals
from agex.evals.report import Report, Summary
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
