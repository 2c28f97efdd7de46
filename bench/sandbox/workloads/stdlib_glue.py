"""What programs of a page do: json, re, datetime and collections."""

import json
import re
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import datetime, timedelta

N = 5_000

Visit = namedtuple("Visit", "user path status at")
PATTERN = re.compile(r"(?P<user>\w+) \[(?P<at>[^\]]+)\] \"GET (?P<path>\S+)\" (?P<status>\d{3})")
START = datetime(2024, 2, 28, 23, 0)


def log(count):
    for i in range(count):
        at = START + timedelta(seconds=i * 61)
        yield f'user{i % 37} [{at.isoformat()}] "GET /page/{i * i % 101}" {200 if i % 11 else 404}'


def visits(lines):
    for line in lines:
        found = PATTERN.match(line)
        yield Visit(
            found.group("user"),
            found["path"],
            int(found["status"]),
            datetime.fromisoformat(found["at"]),
        )


by_user = defaultdict(list)
hours = Counter()
recent = deque(maxlen=50)
for visit in visits(log(N)):
    by_user[visit.user].append(visit._replace(at=visit.at.strftime("%Y-%m-%d %H:%M")))
    hours[visit.at.hour] += 1
    recent.append(visit.path)
document = json.dumps({user: [v._asdict() for v in found] for user, found in by_user.items()}, sort_keys=True)
loaded = json.loads(document, object_pairs_hook=OrderedDict)
errors = sum(1 for found in loaded.values() for v in found if v["status"] == 404)
words = re.sub(r"\d+", lambda match: str(int(match.group()) + 1), " ".join(recent))
result = (len(document), errors, hours.most_common(3), len(words), words[-20:])
