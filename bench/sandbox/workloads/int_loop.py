"""Integer arithmetic in the loops of a function."""

N = 330_000


def mix(count):
    total = 1
    for i in range(count):
        total = (total * 31 + i) % 1_000_003
        if i & 1:
            total ^= i
    return total


def collatz_steps(limit):
    steps = 0
    start = 1
    while start < limit:
        n = start
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        start += 1
    return steps


result = (mix(N), collatz_steps(N // 100))
