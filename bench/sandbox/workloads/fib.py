"""Calls, and nothing else."""

N = 70


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


result = [fib(20) for _ in range(N)]
