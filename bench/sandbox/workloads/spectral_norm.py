"""A matrix that is a function: small calls in nested loops of floats."""

N = 92


def entry(i, j):
    return 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1)


def apply(vector):
    size = len(vector)
    return [sum(entry(i, j) * vector[j] for j in range(size)) for i in range(size)]


def apply_transposed(vector):
    out = []
    for i in range(len(vector)):
        total = 0.0
        for j, value in enumerate(vector):
            total += entry(j, i) * value
        out.append(total)
    return out


u = [1.0] * N
v = u
for _ in range(8):
    v = apply_transposed(apply(u))
    u = apply_transposed(apply(v))
result = round((sum(a * b for a, b in zip(u, v)) / sum(b * b for b in v)) ** 0.5, 9)
