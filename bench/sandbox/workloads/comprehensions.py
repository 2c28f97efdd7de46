"""Comprehensions of every kind, generators and the builtins that consume them."""

N = 120_000


def squares(limit):
    for i in range(limit):
        yield i * i


def flatten(rows):
    for row in rows:
        yield from row


def windows(items, size):
    window = []
    for item in items:
        window.append(item)
        if len(window) == size:
            yield tuple(window)
            del window[0]


evens = [i for i in range(N) if i % 2 == 0]
by_rest = {r: [i for i in evens[:2000] if i % 7 == r] for r in range(7)}
letters = {chr(97 + i % 26) for i in range(N)}
table = [[i * j for j in range(40)] for i in range(N // 250)]
total = sum(i * 3 for i in evens if i % 3)
nested = sum(x for row in table for x in row if x & 1)
mapped = sum(map(lambda x: x + 1, filter(lambda x: x % 5, range(N))))
streamed = sum(flatten(table)) + sum(squares(N))
slid = sum(a * b - c for a, b, c in windows(range(N // 2), 3))
found = any(x > N * 2 for x in evens) or all(x >= 0 for x in evens)
result = (len(by_rest[3]), len(letters), total, nested, mapped, streamed, slid, found)
