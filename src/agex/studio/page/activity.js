// What the agent did, commit by commit, and as it happens.

import { el, fill } from "./dom.js";
import { look, step } from "./looks.js";

const SEEN = new Set(["table", "picture", "figure", "html"]);
const MOST = 6; // of what is shown in place of one commit: the rest is a click away

export class Activity {
  /**
   * @param source where to ask.
   * @param place the element to fill.
   * @param open called with "variables" or "files" and a name that somebody wants to see.
   */
  constructor(source, place, open) {
    this.source = source;
    this.place = place;
    this.open = open;
    this.live = null;
    this.asked = 0;
    this.cards = new Map();
  }

  /** Show the run of a commit, up to that commit. */
  async show(commits, at) {
    const turn = ++this.asked;
    if (at < 0) return this.#put([], null);
    const run = commits[at].run;
    const first = run === null ? at : commits.findIndex((commit) => commit.run === run);
    const shown = commits.slice(first, at + 1).filter((commit) => commit.run === run);
    const cards = await Promise.all(shown.map((commit) => this.#card(commit)));
    if (turn !== this.asked) return undefined; // somebody went on meanwhile
    cards.forEach((card, n) => card.classList.toggle("current", n === cards.length - 1));
    return this.#put(cards, cards.at(-1));
  }

  #put(cards, current) {
    const before = this.current;
    this.current = current;
    fill(this.place, cards.length ? cards : el("p", { class: "note" }, "Nothing was done here yet."));
    if (current && current !== before) {
      if (cards.length > 1) this.place.scrollTop += current.getBoundingClientRect().top - this.place.getBoundingClientRect().top - 12;
      else this.place.scrollTop = 0;
    }
  }

  async #card(commit) {
    if (!this.cards.has(commit.hash)) this.cards.set(commit.hash, await this.#made(commit));
    return this.cards.get(commit.hash);
  }

  async #made(commit) {
    const told = await this.source.commit(commit.hash);
    const routine = !commit.turn || commit.message === `${commit.task}: turn ${commit.turn}`;
    const title = commit.turn ? `Turn ${commit.turn}` : commit.message || "Commit of the program itself";
    return el(
      "article",
      { class: "card", "data-hash": commit.hash },
      el("h2", {}, title, el("span", { class: "when" }, routine ? "" : commit.message)),
      told.steps.map(step),
      await this.#looks(commit),
      this.#chips(commit),
    );
  }

  /** Show the tables, pictures and figures that a commit left among its variables and files. */
  async #looks(commit) {
    const names = [...commit.changed["+"], ...commit.changed["~"]];
    const paths = [...commit.files["+"], ...commit.files["~"]].filter((path) => /\.(png|jpe?g|gif|webp|svg|html?|csv|tsv)$/i.test(path));
    if (names.length + paths.length === 0) return null;
    const lines = names.length ? await this.source.ask("variables", { ref: commit.hash }) : [];
    const wanted = lines.filter((line) => names.includes(line.name) && SEEN.has(line.kind)).slice(0, MOST);
    const variables = wanted.map((line) => this.#shown(line.name, "variable", { ref: commit.hash, name: line.name }));
    const files = paths.slice(0, MOST).map((path) => this.#shown(path, "file", { ref: commit.hash, path }));
    return Promise.all([...variables, ...files]);
  }

  async #shown(label, what, query) {
    const seen = await this.source.ask(what, query);
    return el("div", { class: "shown" }, el("h3", {}, label), look(seen, { short: true, label }));
  }

  #chips(commit) {
    const chip = (kind, sign, name) => el(
      "button",
      {
        type: "button",
        class: `chip ${sign === "-" ? "gone" : ""}`,
        disabled: sign === "-",
        title: { "+": "new", "~": "changed", "-": "gone" }[sign],
        onclick: () => this.open(kind, name),
      },
      `${sign} ${name}`,
    );
    const chips = ["+", "~", "-"].flatMap((sign) => [
      ...commit.changed[sign].map((name) => chip("variables", sign, name)),
      ...commit.files[sign].map((path) => chip("files", sign, path)),
    ]);
    return chips.length > 0 && el("div", { class: "chips", "aria-label": "What this changed" }, chips);
  }

  // -- as it happens -------------------------------------------------------------------------------

  /** Begin to show a run that has just been asked for. */
  begin(message) {
    const box = el("article", { class: "card current live" }, el("h2", {}, "Working"));
    this.live = { message, box, words: null, head: undefined };
  }

  /** Show the run that is under way. */
  showLive() {
    this.asked++;
    this.current = null;
    if (this.place.firstChild !== this.live.box) fill(this.place, this.live.box);
    this.#follow();
  }

  /** What was asked and is not committed yet, for the conversation. */
  pending(head) {
    if (!this.live) return null;
    if (this.live.head === undefined) this.live.head = head;
    return head === this.live.head && el("li", {}, el("div", { class: "message asked current" }, el("p", { class: "prose" }, this.live.message)));
  }

  /** Show what the model is writing. */
  token(words) {
    if (!this.live) return;
    if (!this.live.words) {
      this.live.words = el("pre", { class: "text caret" });
      this.live.box.append(this.live.words);
    }
    this.live.words.append(words);
    this.#follow();
  }

  /** Show what one event told. */
  told(steps) {
    if (!this.live) return;
    this.live.words?.remove();
    this.live.words = null;
    this.live.box.append(...steps.filter((one) => one.kind !== "task").map(step));
    this.#follow();
  }

  /** The run is over; what it did is in the timeline now. */
  end() {
    this.live = null;
  }

  #follow() {
    this.place.scrollTop = this.place.scrollHeight;
  }
}
