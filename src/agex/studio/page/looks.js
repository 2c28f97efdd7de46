// What values, files and steps look like. Whatever an agent made is text here, a picture, or in a frame
// in which nothing runs.

import { python } from "./code.js";
import { bytes, el } from "./dom.js";

/** The style of a frame with an agent's HTML. The page's policy names its hash and allows no other. */
export const FRAME_STYLE =
  ":root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;margin:12px}" +
  "table{border-collapse:collapse}td,th{border:1px solid #8886;padding:3px 8px;text-align:left}" +
  "pre{white-space:pre-wrap}img{max-width:100%}";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"]);
const SHORT_ROWS = 8;

/** Show what there is to see of a variable or a file. */
export function look(seen, { short = false, label = "" } = {}) {
  const show = { table, picture, html, figure, source, bytes: binary }[seen.kind];
  const parts = [show ? show(seen, { short, label }) : text(seen)];
  if (seen.cut) parts.push(note("Only the beginning is shown."));
  return parts;
}

function text(seen) {
  const empty = seen.text === "" && seen.kind !== "lost";
  return el("pre", { class: `text ${seen.kind === "lost" ? "lost" : ""}`, tabindex: "0" }, empty ? "(empty)" : seen.text);
}

function source(seen) {
  return el("pre", { class: "code", tabindex: "0" }, python(seen.text));
}

function note(words) {
  return el("p", { class: "note" }, words);
}

function table(seen, { short, label }) {
  const rows = short ? seen.rows.slice(0, SHORT_ROWS) : seen.rows;
  const numeric = seen.columns.map((_, n) => rows.length > 0 && rows.every((row) => isNumber(row[n])));
  const cell = (tag, value, n) => el(tag, { class: numeric[n] ? "number" : null, scope: tag === "th" ? "col" : null }, value);
  const more = seen.total > rows.length;
  return el(
    "div",
    { class: "table-box" },
    el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": `${label || "table"}, ${seen.total} rows` },
      el(
        "table",
        {},
        el("thead", {}, el("tr", {}, seen.columns.map((name, n) => cell("th", name, n)))),
        el("tbody", {}, rows.map((row) => el("tr", {}, row.map((value, n) => cell("td", value, n))))),
      ),
    ),
    more && note(`${rows.length} of ${seen.total} rows`),
  );
}

function isNumber(value) {
  return value === "" || value === "nan" || (value?.trim() !== "" && Number.isFinite(Number(value)));
}

/** Show a picture: as an image a browser runs nothing of it, of SVG neither. */
export function picture(seen, { label = "" } = {}) {
  if (!PICTURES.has(seen.media_type)) return note(`A picture of a kind that is not shown: ${seen.media_type}`);
  return el("img", { class: "picture", src: `data:${seen.media_type};base64,${seen.data}`, alt: label || "A picture that the agent made" });
}

/** Show an agent's HTML: no scripts, no forms, no links, nothing loaded, an origin of its own. */
function html(seen, { label }) {
  const frame = el("iframe", { class: "guest", sandbox: "", referrerpolicy: "no-referrer", title: `${label || "HTML"}, shown without running it` });
  // The frame has the page's policy, and one of its own first of all: the page may load from its server, this not.
  const policy = document.querySelector('meta[http-equiv="Content-Security-Policy"]').content.match(/'sha256-[^']+'/)[0];
  frame.srcdoc =
    `<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" ` +
    `content="default-src 'none'; img-src data:; style-src ${policy}"><style>${FRAME_STYLE}</style>${seen.text}`;
  return el(
    "div",
    {},
    frame,
    note("Shown without its scripts, styles and whatever it would load."),
    el("details", {}, el("summary", {}, "Source"), text(seen)),
  );
}

function binary(seen) {
  return note(`${bytes(seen.size)} that are neither text nor a picture.`);
}

/**
 * Show a plotly figure: its data goes to a frame of an origin of its own, in which plotly's script and no other
 * runs, and which can load and send nothing. See agex/studio/figures.py.
 */
function figure(seen, { label }) {
  const traces = Array.isArray(seen.figure?.data) ? seen.figure.data : [];
  const kinds = traces.map((trace) => `${trace?.name || "unnamed"} (${trace?.type ?? "scatter"})`);
  const words = `A plotly figure of ${traces.length} ${traces.length === 1 ? "trace" : "traces"}: ${kinds.join(", ")}.`;
  const { content } = document.querySelector('meta[name="agex-figures"]');
  if (!content) return note(`${words} Plotly is not installed where this page comes from.`);
  const frame = el("iframe", { class: "figure-frame", sandbox: "allow-scripts", src: content, title: `${label || "figure"}: ${words}` });
  frame.addEventListener("load", () => frame.contentWindow.postMessage(seen.figure, "*")); // it has no origin to name
  return frame;
}

/** Show one step of an agent. */
export function step(one) {
  const show = STEPS[one.kind];
  return show ? show(one) : block(one.kind, el("pre", { class: "text" }, one.text ?? ""));
}

function block(title, ...parts) {
  return el("div", { class: `step step-${title.split(" ")[0].toLowerCase()}` }, el("div", { class: "step-title" }, title), parts);
}

const pre = (words, kind = "text") => el("pre", { class: kind, tabindex: "0" }, words);

const STEPS = {
  task: (one) => block("Task", el("div", { class: "asked" }, inputs(one))),
  said: (one) => block("Said", el("p", { class: "prose" }, one.text)),
  code: (one) => block("Code", pre(python(one.text), "code")),
  terminal: (one) => block("Terminal", pre(one.text, "code")),
  write: (one) => block(`Wrote ${one.path}`, pre(one.text)),
  edit: (one) => block(`Edited ${one.path}`, el("pre", { class: "text", tabindex: "0" }, diffLines(`${minus("-", one.old)}\n${minus("+", one.text)}`))),
  output: (one) => block("Output", pre(one.text)),
  error: (one) => block("Error", pre(one.text, "text bad")),
  image: (one) => block("Picture", picture(one)),
  files: (one) => block("Files", pre(diffLines(one.text))),
  result: (one) => block("Result", one.look && one.look.kind !== "text" ? look(one.look, { label: "result" }) : el("p", { class: "prose" }, one.text)),
  fail: (one) => block("Failed", el("p", { class: "prose" }, one.text)),
  clarify: (one) => block("Question", el("p", { class: "prose" }, one.text)),
  answer: (one) => block("Answer", el("p", { class: "prose" }, one.text)),
  cancelled: (one) => block("Cancelled", el("p", { class: "prose" }, one.text)),
  trouble: (one) => block("Trouble", pre(one.text, "text bad")),
  note: (one) => block("Note", el("p", { class: "prose" }, one.text)),
};

function minus(sign, words) {
  return words.split("\n").map((line) => sign + line).join("\n");
}

/** Say what a task was asked: one text as it is, anything else by name. In short, a message stands for all. */
export function inputs(one, { short = false } = {}) {
  let given = Object.entries(one.inputs ?? {});
  if (short && "message" in (one.inputs ?? {})) given = [["message", one.inputs.message]];
  if (given.length === 0) return el("p", { class: "prose" }, one.text);
  if (given.length === 1) return el("p", { class: "prose" }, given[0][1]);
  return el("dl", { class: "inputs" }, given.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** Colour the lines of a difference. */
export function diffLines(words) {
  return words.split("\n").map((line, n) => {
    const kind = { "+": "plus", "-": "minus", "~": "changed", "@": "where" }[line[0]];
    return [n > 0 && "\n", kind ? el("span", { class: `diff-${kind}` }, line) : line];
  });
}
