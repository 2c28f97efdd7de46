// Python with its words coloured: spans of text.

import { el } from "./dom.js";

const KEYWORDS = new Set(
  ("and as assert async await break case class continue def del elif else except False finally for from global " +
    "if import in is lambda match None nonlocal not or pass raise return True try while with yield").split(" "),
);
const TOKEN = new RegExp(
  [
    String.raw`(?<comment>#[^\n]*)`,
    String.raw`(?<string>[rRbBfFuU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))`,
    String.raw`(?<number>\b\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?\b)`,
    String.raw`(?<word>[\p{L}_][\p{L}\p{N}_]*)`,
  ].join("|"),
  "gu",
);
const LONGEST = 50_000;

/** Give the parts of a piece of Python. */
export function python(text) {
  if (text.length > LONGEST) return [text];
  const parts = [];
  let done = 0;
  let before = "";
  for (const found of text.matchAll(TOKEN)) {
    const [token] = found;
    const kind = kindOf(found.groups, before);
    before = token;
    if (!kind) continue;
    parts.push(text.slice(done, found.index), el("span", { class: `tok-${kind}` }, token));
    done = found.index + token.length;
  }
  parts.push(text.slice(done));
  return parts;
}

function kindOf(groups, before) {
  if (groups.word === undefined) return groups.comment ? "comment" : groups.string ? "string" : "number";
  if (KEYWORDS.has(groups.word)) return "keyword";
  return before === "def" || before === "class" ? "name" : null;
}
