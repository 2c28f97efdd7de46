"""dateutil under its policy: months and dates as natively, and nothing of a guest's in the tables of its zones.

Stopped by: sandbox.libraries.dateutil, sandbox.patches.library_caches.
"""

import datetime as dt

import pytest

HEAD = """
from datetime import date, datetime, timedelta
from dateutil import parser
from dateutil.parser import isoparse, parse
from dateutil.relativedelta import FR, MO, relativedelta
"""
EVERYDAY = {
    "months": "print(date(2024, 1, 31) + relativedelta(months=1), datetime(2024, 2, 29, 5) - relativedelta(years=1, hours=+3), relativedelta(datetime(2024, 5, 1), datetime(2023, 1, 15)))",
    "parts": "r = relativedelta(date(2024, 5, 1), date(1990, 1, 15)); print(r.years, r.months, r.days, r.weeks, r, bool(r), -r, abs(-r), r * 2, r + relativedelta(days=40), r.normalized(), r == relativedelta(years=34, months=3, days=16), hash(r) == hash(+1 * r))",
    "weekdays": "print(date(2024, 5, 1) + relativedelta(weekday=FR), date(2024, 5, 1) + relativedelta(day=31, weekday=FR(-1)), date(2024, 5, 1) + relativedelta(weekday=MO(+2)), MO, FR(3))",
    "dates": "print([parse(t) for t in ('2024-01-02', 'Jan 5, 2024 3:04 PM', '2024-01-02T03:04:05Z', '5/6/2024', '10 March', '2024-01-02 03:04:05+0200')][:4])",
    "read otherwise": "print(parse('5/6/2024', dayfirst=True), parse('on 5 May 2024 we', fuzzy=True), parse('10:30', default=datetime(2020, 1, 1)), parse('2024-01-02 10:00 EST', tzinfos={'EST': -18000}).utcoffset(), parser.parse('2024-01-02 10:00 UTC', ignoretz=True), isoparse('2024-01-02T03:04Z').tzinfo, parse(b'2024-01-02'))",
    "what is no date": "for t in ('x', '2024-13-45', ''):\n    try: parse(t)\n    except ValueError as e: print(type(e).__name__, e)\ntry: parse(5)\nexcept TypeError: print('no')",
    "ranges": "print([date(2024, 1, 31) + relativedelta(months=i) for i in range(4)])",
    "easter": "from dateutil.easter import easter\nprint(easter(2024))",
}  # fmt: skip


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_dateutil_prints_what_it_prints_natively(room, native, name):
    source = HEAD + EVERYDAY[name]

    assert room("dateutil").printed(source) == native(source)


def test_it_comes_with_pandas(room):
    source = HEAD + "import pandas as pd\nprint(pd.Timestamp('2024-01-31') + relativedelta(months=1))"

    assert room("pandas").printed(source) == "2024-02-29 00:00:00\n"


HOSTILE = {
    "zones": "import dateutil.tz",
    "a zone of the process": "from dateutil import tz",
    "its module": "parser._parser",
    "modules behind it": "parser.tz",
    "what is read from": "parse(vault)",
    "what is read from as iso": "isoparse(vault)",
    "a class of what is known": "parse('2024', parserinfo=vault)",
    "zones that are called": "parse('2024-01-02 10:00 EST', tzinfos=lambda name, offset: 5)",
    "a zone that is none": "parse('2024-01-02 10:00 EST', tzinfos={'EST': vault})",
    "a date that is none": "parse('10:30', default=vault)",
    "a class of zones": "type(isoparse('2024-01-02T03:04+02:00').tzinfo)('x', 5)",
    "a class over it": "class Z(type(isoparse('2024-01-02T03:04+02:00').tzinfo)): pass\nZ('x', 5)",
    "a constant": "MO.n = 5",
    "a constant made anew": "MO.__init__(1, 5)",
    "a difference of the host's": "given.days = 7",
    "one made anew": "relativedelta.__init__(given, days=7)",
    "by its parts": "relativedelta.weeks.fset(given, 7)",
    "a method": "relativedelta.__add__ = None",
    "the parser of the process": "parser.DEFAULTPARSER",
}  # fmt: skip


class Vault:
    def __init__(self):
        self.asked = []

    def read(self):
        self.asked.append("read")
        return "2024-01-02"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_dateutil_is_refused(room, name):
    from dateutil.relativedelta import MO, relativedelta

    vault, given = Vault(), relativedelta(days=1)

    assert room("dateutil").refuses(HEAD + HOSTILE[name], vault=vault, given=given)
    assert vault.asked == []
    assert (given.days, MO.n) == (1, None)


def test_no_zone_is_kept_under_what_a_guest_says(room):
    from dateutil import tz

    lying = (
        "class N(int):\n    def __hash__(self): return hash(4242)\n    def __eq__(self, other): return True\n"
        "class S(str):\n    def __hash__(self): return hash('LIE')\n    def __eq__(self, other): return True\n"
        "    def upper(self): return self\n"
        "parse('2024-01-02 10:00 LIE', tzinfos={S('LIE'): N(4242)})\nparse(S('2024-01-02T03:04:05+01:10'))\n"
    )

    assert room("dateutil").run(HEAD + lying).error is None
    assert tz.tzoffset("LIE", 4242).utcoffset(None) == dt.timedelta(seconds=4242)
    assert all(
        type(part) in {str, float, int, type(None)}
        for key in list(tz.tzoffset._TzOffsetFactory__instances)
        for part in key
    )
