"""Raise, catch, clean up and define exceptions."""

N = 45_000


class Shortage(ValueError):
    def __init__(self, item, missing):
        super().__init__(f"{missing} of {item} missing")
        self.item = item
        self.missing = missing


class Stock:
    def __init__(self):
        self.levels = {"a": 5, "b": 0, "c": 9}
        self.closed = 0

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.closed += 1
        return kind is KeyError

    def take(self, item, count):
        if self.levels[item] < count:
            raise Shortage(item, count - self.levels[item])
        return count


def orders(count):
    stock = Stock()
    taken = missing = unknown = finished = 0
    for i in range(count):
        try:
            taken += stock.take("abcd"[i % 4], i % 7)
        except Shortage as error:
            missing += error.missing
        except KeyError:
            unknown += 1
        else:
            taken += 1
        finally:
            finished += 1
        with stock:
            if i % 8 == 0:
                raise KeyError(i)
    return taken, missing, unknown, finished, stock.closed


def parsed(count):
    good = bad = 0
    for i in range(count):
        try:
            good += int("12x" if i % 3 == 0 else "12")
        except (ValueError, TypeError):
            bad += 1
    return good, bad


result = (orders(N), parsed(N))
