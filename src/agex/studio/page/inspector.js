// The state at a commit: variables, files, and what differs from another commit.

import { bytes, el, fill, roving } from "./dom.js";
import { diffLines, look } from "./looks.js";

const PANELS = ["variables", "files", "changes"];

export class Inspector {
  /**
   * @param source where to ask.
   * @param place the element to fill.
   * @param tabs the list of tabs.
   */
  constructor(source, place, tabs) {
    this.source = source;
    this.place = place;
    this.tabs = tabs;
    this.panel = "variables";
    this.commits = [];
    this.at = -1;
    this.against = null;
    this.asked = 0;
    this.unfolded = new Set();
    for (const name of PANELS) this.#tab(name).addEventListener("click", () => this.choose(name));
    roving(tabs, "[role=tab]", ["ArrowLeft", "ArrowRight"], (tab) => tab.click());
  }

  #tab(name) {
    return this.tabs.querySelector(`#tab-${name}`);
  }

  /** Show the state at a commit. */
  show(commits, at) {
    this.commits = commits;
    this.at = at;
    return this.#fill();
  }

  /** Show one of the three. */
  choose(panel) {
    this.panel = panel;
    for (const name of PANELS) {
      this.#tab(name).setAttribute("aria-selected", String(name === panel));
      this.#tab(name).tabIndex = name === panel ? 0 : -1;
    }
    this.place.setAttribute("aria-labelledby", `tab-${panel}`);
    return this.#fill();
  }

  /** Show one variable or file, unfolded. */
  async open(panel, name) {
    this.unfolded.add(`${panel}/${name}`);
    await this.choose(panel);
    const item = [...this.place.querySelectorAll(".item")].find((each) => each.dataset.name === name);
    item?.querySelector("summary").focus();
    item?.scrollIntoView({ block: "nearest" });
  }

  async #fill() {
    const turn = ++this.asked;
    const commit = this.commits[this.at];
    this.place.setAttribute("aria-busy", "true"); // what is shown until then is of another commit or panel
    const late = setTimeout(() => turn === this.asked && fill(this.place, el("p", { class: "empty" }, "Reading…")), 300);
    let parts;
    try {
      parts = commit ? await this[`_${this.panel}`](commit) : el("p", { class: "empty" }, "Nothing is kept yet.");
    } finally {
      clearTimeout(late);
      if (turn === this.asked) this.place.setAttribute("aria-busy", "false");
    }
    if (turn !== this.asked) return; // somebody went on meanwhile
    const { scrollTop } = this.place;
    fill(this.place, parts);
    this.place.scrollTop = scrollTop;
  }

  async _variables(commit) {
    const lines = await this.source.ask("variables", { ref: commit.hash });
    if (!lines.length) return el("p", { class: "empty" }, "No variables.");
    return lines.map((line) => this.#item("variables", commit, line.name, {
      type: line.kind === "large" ? bytes(line.size) : line.kind === "lost" ? "not kept" : line.type,
      line: line.kind === "large" ? "large; open it to read it" : line.text.split("\n")[0],
      mark: mark(commit.changed, line.name),
      body: async () => look(await this.source.ask("variable", { ref: commit.hash, name: line.name }), { label: line.name }),
    }));
  }

  async _files(commit) {
    const files = await this.source.ask("files", { ref: commit.hash });
    if (!files.length) return el("p", { class: "empty" }, "No files.");
    return files.map((file) => this.#item("files", commit, file.path, {
      type: bytes(file.size),
      mark: mark(commit.files, file.path),
      body: async () => [
        look(await this.source.ask("file", { ref: commit.hash, path: file.path }), { label: file.path }),
        el("button", { type: "button", class: "quiet", onclick: () => this.#download(commit, file.path) }, "Download"),
      ],
    }));
  }

  async _changes(commit) {
    const others = this.commits.filter((other) => other.hash !== commit.hash);
    const known = others.some((other) => other.hash === this.against);
    const old = known ? this.against : commit.parent ?? "";
    const found = await this.source.ask("diff", { old, new: commit.hash });
    const choice = el(
      "select",
      { id: "against", onchange: (event) => { this.against = event.target.value; this.#fill(); } },
      el("option", { value: "parent", selected: !known }, "the commit before"),
      others.toReversed().map((other) => el("option", { value: other.hash, selected: other.hash === old && known }, label(other))),
    );
    const parts = [part("New variables", found.added), part("Changed variables", found.changed), part("Gone variables", found.removed),
      part("New files", found.files.added), part("Changed files", found.files.changed), part("Gone files", found.files.removed)].filter(Boolean);
    return [
      el("div", { class: "against" }, el("label", { for: "against" }, "Compared with"), choice),
      parts.length ? parts : el("p", { class: "empty" }, "Nothing differs."),
    ];
  }

  #item(panel, commit, name, { type, line, mark: state, body }) {
    const key = `${panel}/${name}`;
    const box = el("div", { class: "body" });
    const item = el(
      "details",
      { class: `item ${state}`, "data-name": name },
      el("summary", {}, el("span", { class: "name", title: name }, name), el("span", { class: "type" }, type), line && el("span", { class: "line" }, line)),
      box,
    );
    const load = async () => {
      try {
        fill(box, await body());
      } catch (error) {
        fill(box, el("p", { class: "note" }, error.message));
      }
    };
    item.addEventListener("toggle", () => {
      if (item.open) {
        this.unfolded.add(key);
        if (!box.hasChildNodes()) load();
      } else this.unfolded.delete(key);
    });
    item.open = this.unfolded.has(key);
    return item;
  }

  async #download(commit, path) {
    const { data } = await this.source.ask("bytes", { ref: commit.hash, path });
    const content = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
    // Never of a type that a browser would open in the page's own origin.
    const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
    el("a", { href: url, download: path.split("/").at(-1) }).click();
    URL.revokeObjectURL(url);
  }
}

function mark(changes, name) {
  if (changes["+"].includes(name)) return "new";
  return changes["~"].includes(name) ? "changed" : "";
}

function label(commit) {
  return `${commit.message || "commit"} · ${commit.hash.slice(0, 8)}`;
}

function part(title, entries) {
  const names = Object.keys(entries).sort();
  if (!names.length) return null;
  return el("section", { class: "part" }, el("h3", {}, title), names.map((name) => {
    const words = entries[name];
    if (!words.includes("\n")) return el("p", { class: "entry" }, el("strong", {}, name), words && ` ${words}`);
    return el("div", { class: "entry" }, el("strong", {}, name), el("pre", { class: "text", tabindex: "0" }, diffLines(words)));
  }));
}
