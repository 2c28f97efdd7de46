"""A script for the tests, written by hand: what a model could answer. No model said it.

A function of the messages, because each day is asked for in another process.
"""

from __future__ import annotations

from agex.models import Message

FIRST = '''I have no module for this yet.

```write_file path=helpers/durations.py
import re


def minutes(text: str) -> int:
    """Minutes of a duration such as '7h 45m'."""
    hours, rest = re.search(r"(\\d+)h (\\d+)m", text).groups()
    return 60 * int(hours) + int(rest)
```

```python
from helpers.durations import minutes as in_minutes

task_success(in_minutes(order))
```
'''

LATER = """There is `helpers/durations.py`.

```python
from helpers.durations import minutes as in_minutes

task_success(in_minutes(order) + 465)
```
"""


def reply(messages: list[Message]) -> str:
    """Answer by what the prompt lists of the agent's own modules."""
    return LATER if "def minutes(text: str) -> int" in messages[-1].content else FIRST
