// The page: a conversation, a timeline, what the agent did, and the state at the commit that is looked at.

import { by, el, fill, roving } from "./dom.js";
import { Activity } from "./activity.js";
import { Inspector } from "./inspector.js";
import { inputs } from "./looks.js";
import { openServer } from "./server.js";
import { openTab } from "./tab.js";

const source = document.querySelector('meta[name="agex-source"]').content === "server" ? openServer() : openTab();
const inspector = new Inspector(source, by("panel"), by("tabs"));
const activity = new Activity(source, by("activity"), (kind, name) => inspector.open(kind, name));

/** What is shown: a timeline, the commit that is looked at, and whether that is always the newest. */
const view = { timeline: null, branch: undefined, asked: 0, selected: null, following: true };
const found = new Map();

// -- what is there ---------------------------------------------------------------------------------

/** What a commit did never changes, so it is asked once. */
source.commit = (hash) => {
  if (!found.has(hash)) found.set(hash, source.ask("commit", { ref: hash }).catch((error) => {
    found.delete(hash);
    throw error;
  }));
  return found.get(hash);
};

async function refresh(branch = view.branch) {
  view.branch = branch;
  const asked = ++view.asked;
  let timeline;
  try {
    timeline = await source.ask("timeline", branch ? { branch } : {});
  } catch (error) {
    if (asked === view.asked) view.branch = view.timeline?.branch;
    throw error;
  }
  if (asked !== view.asked) return; // asked again since: of another branch, it may be
  timeline.commits.reverse();
  view.timeline = timeline;
  view.branch = timeline.branch;
  const known = timeline.commits.some((commit) => commit.hash === view.selected);
  if (view.following || !known) {
    view.selected = timeline.head;
    view.following = true;
  }
  show();
}

function select(hash) {
  failed(null);
  view.selected = hash;
  view.following = hash === view.timeline.head;
  show();
}

function step(count) {
  const { commits } = view.timeline;
  const at = commits.findIndex((commit) => commit.hash === view.selected) + count;
  if (commits[at]) select(commits[at].hash);
}

// -- showing it ------------------------------------------------------------------------------------

function show() {
  const { timeline, selected } = view;
  const at = timeline.commits.findIndex((commit) => commit.hash === selected);
  const commit = timeline.commits[at];
  by("name").textContent = timeline.name;
  by("name").title = timeline.name;
  document.title = `${timeline.name} · agex studio`;
  fill(by("branch"), branchNames(timeline).map((name) => el("option", { value: name, selected: name === timeline.branch }, name)));
  showTrack(timeline, at);
  showWhere(commit, at);
  showMessages(timeline, at);
  source.looked?.();
  attempt(() => (activity.live && view.following ? activity.showLive() : activity.show(timeline.commits, at)));
  attempt(() => inspector.show(timeline.commits, at));
}

function branchNames(timeline) {
  const names = Object.keys(timeline.branches).sort();
  return names.includes(timeline.branch) ? names : [timeline.branch, ...names];
}

function showTrack(timeline, at) {
  const held = document.activeElement?.dataset?.hash;
  const runs = [];
  timeline.commits.forEach((commit, n) => {
    const last = runs.at(-1);
    if (last && last.run !== null && last.run === commit.run) last.commits.push([commit, n]);
    else runs.push({ run: commit.run, title: commit.task ?? (commit.message || "commit"), commits: [[commit, n]] });
  });
  fill(by("track"), runs.map((run) => el(
    "div",
    { class: "run", role: "group", "aria-label": run.title },
    el("span", { class: "run-name", title: run.title }, run.title),
    el("div", { class: "run-commits" }, run.commits.map(([commit, n]) => dot(commit, n, at))),
  )));
  const current = by("track").querySelector('[aria-selected="true"]');
  current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (held) by("track").querySelector(`[data-hash="${held}"]`)?.focus();
  by("back").disabled = at <= 0;
  by("forward").disabled = at < 0 || at === timeline.commits.length - 1;
}

function dot(commit, n, at) {
  const ends = commit.said.at(-1)?.kind;
  const kind = { result: "ended", fail: "bad", trouble: "bad", cancelled: "bad" }[ends] ?? "";
  const turns = commit.turn ? `turn ${commit.turn}` : commit.message || "commit";
  const names = commit.names.length ? `, ${commit.names.join(", ")}` : "";
  return el(
    "button",
    {
      type: "button",
      role: "option",
      class: `commit ${kind} ${n > at ? "later" : ""}`,
      "data-hash": commit.hash,
      "aria-selected": n === at ? "true" : "false",
      tabindex: n === at ? "0" : "-1",
      title: `${commit.message || "commit"}${names}\n${time(commit.time)}`,
      "aria-label": `${turns}, ${commit.message}${names}`,
      onclick: () => select(commit.hash),
    },
    commit.turn ? String(commit.turn) : "·",
    commit.names.some((name) => name.startsWith("tag ")) ? " ⚑" : null,
  );
}

function showWhere(commit, at) {
  const { commits } = view.timeline;
  const past = commit && commit.hash !== view.timeline.head;
  by("where").className = past ? "past" : "";
  by("now").hidden = !past;
  by("fork").hidden = !commit || !by("fork-form").hidden;
  fill(
    by("where-text"),
    commit
      ? [el("strong", {}, `${at + 1} of ${commits.length}`), " · ", commit.message || "commit", " · ", time(commit.time),
         " · ", el("code", {}, commit.hash.slice(0, 10)), el("span", { id: "spent" }, spent(commits.slice(0, at + 1), commit.run))]
      : "No commits yet.",
  );
}

/** Say what a run has cost so far: models, tokens, dollars, seconds of the models. */
function spent(commits, run) {
  const own = run ? commits.filter((commit) => commit.run === run) : [];
  const models = [...new Set(own.flatMap((commit) => commit.models))];
  if (!models.length) return "";
  const sum = (key) => own.reduce((total, commit) => total + commit[key], 0);
  const known = own.every((commit) => commit.cost !== null);
  const cost = known ? `$${sum("cost").toFixed(4)}` : "price unknown";
  return ` · this run so far: ${models.join(", ")} · ${sum("tokens").toLocaleString("en")} tokens · ${cost} · ${sum("seconds").toFixed(1)} s`;
}

function time(text) {
  const when = new Date(text);
  const today = when.toDateString() === new Date().toDateString();
  return when.toLocaleString(undefined, today ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" });
}

const WHO = { task: "Asked", answer: "Answer to the question", result: "Answered", fail: "Gave up", clarify: "Asks back", cancelled: "Cancelled", trouble: "Trouble" };

function showMessages(timeline, at) {
  const list = by("messages");
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const run = timeline.commits[at]?.run;
  const made = [];
  timeline.commits.forEach((commit, n) => {
    for (const said of commit.said) {
      const kind = { task: "asked", answer: "asked", fail: "bad", trouble: "bad", cancelled: "bad" }[said.kind] ?? said.kind;
      const who = said.kind === "task" ? said.text : WHO[said.kind];
      const current = commit.run !== null && commit.run === run ? "current" : "";
      made.push(el("li", {}, el(
        "button",
        { type: "button", class: `message ${kind} ${current} ${n > at ? "later" : ""}`, onclick: () => select(lastOf(said, commit, n)) },
        el("span", { class: "who" }, who),
        said.kind === "task" ? inputs(said, { short: true }) : el("p", { class: "prose" }, said.text),
      )));
    }
  });
  fill(list, made, waiting(timeline), activity.pending(timeline.head));
  if (atEnd || view.following) list.scrollTop = list.scrollHeight;
}

/** Calls that wait for a person's yes, and questions for their answer; those asked in this tab have the composer. */
function waiting(timeline) {
  return timeline.waiting
    .filter((run) => !run.asks || source.decide)
    .map((run) => (run.asks ? question : approval)(run, { branch: timeline.branch, run: run.run_id, call: run.call }));
}

const drafts = new Map();

function question(run, decision) {
  const answer = el("input", {
    "aria-label": "Your answer",
    placeholder: "your answer",
    maxlength: "2000",
    required: "",
    value: drafts.get(run.call),
    oninput: () => drafts.set(run.call, answer.value),
  });
  const send = (event) => {
    event.preventDefault();
    act(() => decide({ ...decision, word: "answer", reason: answer.value }));
  };
  return el(
    "li",
    { class: "message clarify waiting" },
    el("span", { class: "who" }, `${run.task} asks, and waits for the answer`),
    el("p", { class: "question" }, run.text),
    el("form", { class: "row", onsubmit: send }, answer, el("button", { type: "submit", class: "primary" }, "Answer")),
  );
}

function approval(run, decision) {
  const reason = el("input", { "aria-label": "Why not", placeholder: "why not, for the agent", maxlength: "500" });
  const button = (name, props, word) =>
    el("button", { type: "button", ...props, onclick: () => act(() => decide({ ...decision, word, reason: reason.value })) }, name);
  return el(
    "li",
    { class: "message clarify waiting" },
    el("span", { class: "who" }, `${run.task} waits for approval of`),
    el("code", {}, run.text),
    run.source && el("p", { class: "note" }, "in the line ", el("code", {}, run.source)),
    run.call && source.decide &&
      el("div", { class: "row" }, button("Approve", { class: "primary" }, "approve"), button("Reject", {}, "reject"), reason),
  );
}

async function decide(decision) {
  await source.decide(decision);
  view.following = true;
  await refresh();
  const word = { approve: "Approved", reject: "Rejected", answer: "Answered" }[decision.word];
  status(`${word}: the run goes on when its task is resumed`);
}

/** A question leads to the last commit of its run, an answer to its own. */
function lastOf(said, commit) {
  if (said.kind !== "task") return commit.hash;
  return view.timeline.commits.findLast((other) => other.run === commit.run).hash;
}

// -- doing things ----------------------------------------------------------------------------------

export function status(words, busy = false) {
  by("status").textContent = words;
  by("status").className = busy ? "busy" : "";
}

function failed(error) {
  by("alert").hidden = !error;
  by("alert").textContent = error ? error.message : "";
}

/** Do something of the page's own accord; what goes wrong is shown. */
async function attempt(action) {
  try {
    await action();
  } catch (error) {
    if (!error.stopped) failed(error); // of what was ended nothing is wrong
  }
}

/** Do what somebody asked for: what went wrong before is settled. */
function act(action) {
  failed(null);
  return attempt(action);
}

by("back").addEventListener("click", () => step(-1));
by("forward").addEventListener("click", () => step(1));
by("now").addEventListener("click", () => select(view.timeline.head));
roving(by("track"), "[role=option]", ["ArrowLeft", "ArrowRight"], (item) => select(item.dataset.hash));

by("branch").addEventListener("change", (event) => act(async () => {
  const branch = event.target.value;
  await source.choose(branch);
  view.following = true;
  await refresh(branch);
}));

function forking(open) {
  by("fork-form").hidden = !open;
  by("fork").hidden = open;
  if (open) by("fork-name").focus();
}
by("fork").addEventListener("click", () => forking(true));
by("fork-cancel").addEventListener("click", () => { forking(false); by("fork").focus(); });
by("fork-form").addEventListener("keydown", (event) => { if (event.key === "Escape") by("fork-cancel").click(); });
by("fork-form").addEventListener("submit", (event) => {
  event.preventDefault();
  act(async () => {
    await fork(by("fork-name").value);
    by("fork-name").value = "";
    forking(false);
    by("branch").focus();
  });
});

/** Go on from the commit that is looked at, on a branch of its own. */
async function fork(name) {
  const made = await source.fork(name, view.selected);
  await source.choose(made.branch);
  view.following = true;
  await refresh(made.branch);
  status(`On the new branch ${made.branch}`);
}

const THEMES = { auto: ["light", "Auto"], light: ["dark", "Light"], dark: ["auto", "Dark"] };
function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  by("theme").textContent = THEMES[name][1];
  by("theme").setAttribute("aria-label", `Colours: ${name === "auto" ? "as the system has them" : name}`);
  localStorage.setItem("agex-theme", name);
}
const stored = localStorage.getItem("agex-theme");
theme(stored in THEMES ? stored : "auto");
by("search").addEventListener("submit", (event) => {
  event.preventDefault();
  act(search);
});
by("found-close").addEventListener("click", () => closeSearch());
for (const place of [by("search"), by("found")]) place.addEventListener("keydown", (event) => { if (event.key === "Escape") closeSearch(); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  by("words").focus();
});

async function search() {
  const words = by("words").value.trim();
  if (!words) return closeSearch();
  const { timeline } = view;
  const hits = await source.ask("search", { words, branch: timeline.branch });
  by("found-text").textContent = hits.length ? `${hits.length} found for “${words}”` : `Nothing found for “${words}” on ${timeline.branch}.`;
  fill(by("hits"), hits.map((hit) => {
    const commit = timeline.commits.find((each) => each.hash === hit.hash);
    return el("li", {}, el("button", { type: "button", class: "hit", onclick: () => select(hit.hash) },
      el("span", { class: "type" }, `${hit.kind} · ${commit?.message || hit.hash.slice(0, 8)}`), el("span", { class: "text" }, hit.text)));
  }));
  by("found").hidden = false;
  return undefined;
}

function closeSearch() {
  by("found").hidden = true;
  by("words").focus();
}

by("theme").addEventListener("click", () => theme(THEMES[localStorage.getItem("agex-theme")][0]));

// -- beginning -------------------------------------------------------------------------------------

await attempt(async () => {
  if (source.canRun) await source.begin({ act, activity, attempt, failed, fork, refresh, show, status, view });
  else await refresh();
});
if (view.timeline) source.watch?.(view.timeline, () => attempt(() => refresh()), failed);
document.documentElement.dataset.ready = "yes";
