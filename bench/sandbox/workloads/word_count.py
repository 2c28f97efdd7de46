"""Count the words of a text: str methods, dicts and sorting."""

N = 7_500

LINE = "The {} of the River, the river of {}: 'stones' and Bridges -- and {} stones; nobody knows why."
NAMES = ["heron", "miller", "ferry", "otter", "Alder", "moor", "lantern"]


def text(lines):
    out = []
    for i in range(lines):
        out.append(LINE.format(NAMES[i % 7], NAMES[i % 5], NAMES[i * i % 7]))
    return "\n".join(out)


def count(source):
    counts = {}
    lengths = {}
    for line in source.splitlines():
        for raw in line.split():
            word = raw.strip(".,:;-'\"").lower()
            if not word:
                continue
            counts[word] = counts.get(word, 0) + 1
            lengths.setdefault(len(word), set()).add(word)
    return counts, lengths


counts, lengths = count(text(N))
top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]
result = (top, sorted((size, len(words)) for size, words in lengths.items()))
