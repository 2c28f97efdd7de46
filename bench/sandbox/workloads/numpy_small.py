"""Many calls on small arrays: what each attribute of a library costs."""

import numpy as np

N = 5_000

points = np.array([[0.0, 1.0, 2.0], [2.0, 0.5, 1.0], [1.0, 1.0, 0.0]])
turn = np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
total = 0.0
for i in range(N):
    moved = points.dot(turn)
    center = moved.mean(axis=0)
    moved = np.abs(moved - center)
    total += float(moved.max()) + float(np.sqrt(moved[i % 3]).sum())
    if moved.shape[0] != 3 or moved.T.ndim != 2:
        total = -1.0
result = round(total, 6)
