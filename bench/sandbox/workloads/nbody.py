"""Planets as objects: attribute loads and stores, and float arithmetic."""

import math

N = 10_000


class Body:
    def __init__(self, position, velocity, mass):
        self.x, self.y, self.z = position
        self.vx, self.vy, self.vz = velocity
        self.mass = mass

    def move(self, dt):
        self.x += dt * self.vx
        self.y += dt * self.vy
        self.z += dt * self.vz

    def kinetic(self):
        return 0.5 * self.mass * (self.vx**2 + self.vy**2 + self.vz**2)


class System:
    def __init__(self, bodies):
        self.bodies = bodies
        self.pairs = [(a, b) for i, a in enumerate(bodies) for b in bodies[i + 1 :]]

    def step(self, dt):
        for a, b in self.pairs:
            dx = a.x - b.x
            dy = a.y - b.y
            dz = a.z - b.z
            square = dx * dx + dy * dy + dz * dz
            pull = dt / (square * math.sqrt(square))
            a.vx -= dx * b.mass * pull
            a.vy -= dy * b.mass * pull
            a.vz -= dz * b.mass * pull
            b.vx += dx * a.mass * pull
            b.vy += dy * a.mass * pull
            b.vz += dz * a.mass * pull
        for body in self.bodies:
            body.move(dt)

    def energy(self):
        total = sum(body.kinetic() for body in self.bodies)
        for a, b in self.pairs:
            total -= a.mass * b.mass / math.dist((a.x, a.y, a.z), (b.x, b.y, b.z))
        return total


system = System(
    [
        Body((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 39.5),
        Body((4.84, -1.16, -0.10), (0.60, 2.81, -0.02), 0.0377),
        Body((8.34, 4.12, -0.40), (-1.01, 1.82, 0.008), 0.0113),
        Body((12.89, -15.11, -0.22), (1.08, 0.87, -0.01), 0.0017),
        Body((15.38, -25.92, 0.18), (0.98, 0.59, -0.03), 0.0020),
    ]
)
for _ in range(N):
    system.step(0.001)
result = round(system.energy(), 12)
