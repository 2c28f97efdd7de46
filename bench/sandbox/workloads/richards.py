"""An operating system in small: tasks of several classes pass packets through a scheduler."""

N = 40

DEVICE, WORK = 0, 1
IDLE, WORKER, HANDLER_A, HANDLER_B, DEVICE_A, DEVICE_B = range(6)


class Packet:
    def __init__(self, link, owner, kind):
        self.link = link
        self.owner = owner
        self.kind = kind
        self.slot = 0
        self.data = [0] * 4

    def append_to(self, queue):
        self.link = None
        if queue is None:
            return self
        last = queue
        while last.link is not None:
            last = last.link
        last.link = self
        return queue


class State:
    def __init__(self, *, packet_pending=False, waiting=False, held=False):
        self.packet_pending = packet_pending
        self.waiting = waiting
        self.held = held

    def is_blocked(self):
        return self.held or (self.waiting and not self.packet_pending)

    def wakes_with_packet(self):
        return self.packet_pending and self.waiting and not self.held


class Task(State):
    def __init__(self, scheduler, ident, priority, queue, **state):
        super().__init__(packet_pending=queue is not None, **state)
        self._scheduler = scheduler
        self._queue = queue
        self.ident = ident
        self.priority = priority
        scheduler.add(self)

    def take(self):
        packet = self._queue
        self._queue = packet.link
        self.waiting = False
        self.packet_pending = self._queue is not None
        return packet

    def run(self):
        return self.work(self.take() if self.wakes_with_packet() else None)

    def work(self, packet):
        raise NotImplementedError

    def receive(self, packet, sender):
        if self._queue is None:
            self._queue = packet
            self.packet_pending = True
            if self.priority > sender.priority:
                return self
        else:
            packet.append_to(self._queue)
        return sender

    def wait(self):
        self.waiting = True
        return self

    def hold(self):
        self._scheduler.holds += 1
        self.held = True
        return self._scheduler.after(self)

    def release(self, ident):
        other = self._scheduler.find(ident)
        other.held = False
        return other if other.priority > self.priority else self

    def send(self, packet):
        self._scheduler.sent += 1
        receiver = self._scheduler.find(packet.owner)
        packet.link = None
        packet.owner = self.ident
        return receiver.receive(packet, self)


class Idle(Task):
    def __init__(self, scheduler, count):
        super().__init__(scheduler, IDLE, 0, None)
        self.control = 1
        self.count = count

    def work(self, packet):
        self.count -= 1
        if self.count == 0:
            return self.hold()
        if self.control & 1:
            self.control = self.control // 2 ^ 0xD008
            return self.release(DEVICE_B)
        self.control //= 2
        return self.release(DEVICE_A)


class Worker(Task):
    def __init__(self, scheduler, queue):
        super().__init__(scheduler, WORKER, 1000, queue, waiting=True)
        self.target = HANDLER_A
        self.letter = 0

    def work(self, packet):
        if packet is None:
            return self.wait()
        self.target = HANDLER_B if self.target == HANDLER_A else HANDLER_A
        packet.owner = self.target
        packet.slot = 0
        for i in range(4):
            self.letter = self.letter % 26 + 1
            packet.data[i] = 64 + self.letter
        return self.send(packet)


class Handler(Task):
    def __init__(self, scheduler, ident, priority, queue):
        super().__init__(scheduler, ident, priority, queue, waiting=True)
        self.work_in = None
        self.device_in = None

    def work(self, packet):
        if packet is not None:
            if packet.kind == WORK:
                self.work_in = packet.append_to(self.work_in)
            else:
                self.device_in = packet.append_to(self.device_in)
        job = self.work_in
        if job is None:
            return self.wait()
        if job.slot >= 4:
            self.work_in = job.link
            return self.send(job)
        device = self.device_in
        if device is None:
            return self.wait()
        self.device_in = device.link
        device.slot = job.data[job.slot]
        job.slot += 1
        return self.send(device)


class Device(Task):
    def __init__(self, scheduler, ident, priority):
        super().__init__(scheduler, ident, priority, None, waiting=True)
        self.pending = None

    def work(self, packet):
        if packet is None:
            if self.pending is None:
                return self.wait()
            packet, self.pending = self.pending, None
            return self.send(packet)
        self.pending = packet
        return self.hold()


class Scheduler:
    def __init__(self):
        self.tasks = {}
        self.order = []
        self.holds = self.sent = self.steps = 0

    def add(self, task):
        self.tasks[task.ident] = task
        self.order.append(task)
        self.order.sort(key=lambda task: -task.priority)

    def find(self, ident):
        return self.tasks[ident]

    def after(self, task):
        place = self.order.index(task) + 1
        return self.order[place] if place < len(self.order) else None

    def run(self):
        task = self.order[0]
        while task is not None:
            self.steps += 1
            task = self.after(task) if task.is_blocked() else task.run()


def packets(owner, kind, count):
    queue = None
    for _ in range(count):
        queue = Packet(queue, owner, kind)
    return queue


def simulate(rounds):
    scheduler = Scheduler()
    Idle(scheduler, rounds)
    Worker(scheduler, packets(WORKER, WORK, 2))
    Handler(scheduler, HANDLER_A, 2000, packets(DEVICE_A, DEVICE, 3))
    Handler(scheduler, HANDLER_B, 3000, packets(DEVICE_B, DEVICE, 3))
    Device(scheduler, DEVICE_A, 4000)
    Device(scheduler, DEVICE_B, 5000)
    scheduler.run()
    return scheduler.steps, scheduler.sent, scheduler.holds


result = [simulate(200) for _ in range(N)]
