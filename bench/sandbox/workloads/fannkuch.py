"""Permutations of a small list: slices, subscripts and swaps."""

N = 40_000


def most_flips(limit):
    size = 9
    current = list(range(size))
    rotations = [0] * size
    most = checksum = seen = 0
    while seen < limit:
        first = current[0]
        if first:
            flips = 1
            row = current[:]
            while row[first]:
                row[: first + 1] = row[first::-1]
                first = row[0]
                flips += 1
            most = max(most, flips)
            checksum += -flips if seen % 2 else flips
        seen += 1
        for i in range(1, size):
            current.insert(i, current.pop(0))
            rotations[i] += 1
            if rotations[i] <= i:
                break
            rotations[i] = 0
        else:
            break
    return most, checksum


result = most_flips(N)
