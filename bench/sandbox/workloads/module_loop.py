"""The same kind of arithmetic, in loops at the top level of the program."""

N = 180_000

total = 1
for i in range(N):
    total = (total * 31 + i) % 1_000_003
    if i & 1:
        total ^= i

low = 0
high = N
while low < high:
    total += low * high % 7
    low += 1
    high -= 1

result = total
