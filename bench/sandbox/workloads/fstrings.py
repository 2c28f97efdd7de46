"""Text from values: f-strings, format, join and replace."""

N = 15_000


class Item:
    def __init__(self, name, price, count):
        self.name = name
        self.price = price
        self.count = count

    def __str__(self):
        return f"{self.count} x {self.name}"


def lines(count):
    out = []
    for i in range(count):
        item = Item(f"item-{i:05d}", i * 1.25, i % 9)
        out.append(f"{item!s:<24}|{item.price:>12,.2f}|{item.name!r}|{i:#x}|{i % 7 == 0}")
        out.append(f"{i} {item.price:>8.3f} {item.name}")
        out.append(item.name.replace("-", "_").upper().ljust(14, "."))
        out.append("%s=%d" % (item.name, item.count))
    return out


made = lines(N)
text = "\n".join(made)
result = (len(text), made[-4], made[-3], made[-2], made[-1], sum(map(len, made[::7])))
