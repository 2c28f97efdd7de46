// Sending something while an earlier commit is looked at: the page asks where it is to go.

import { by } from "./dom.js";

/** Make the question. `decided()` is whether to go on, with the page where it is to go on from. */
export function whereTo(page) {
  let answer = null; // what the question is answered to, while it stands

  function settle(chosen) {
    const settled = answer;
    answer = null;
    by("behind").hidden = true;
    settled?.(chosen);
  }

  function show() {
    const { commits } = page.view.timeline;
    const at = commits.findIndex((commit) => commit.hash === page.view.selected);
    by("behind-text").textContent = `You look at ${at + 1} of ${commits.length}, not at the newest. Where does this go?`;
  }

  async function decided() {
    if (page.view.following || !page.view.timeline?.head) return true;
    settle(null); // asked anew
    show();
    by("behind").hidden = false;
    by("behind-fork").focus();
    const chosen = await new Promise((done) => { answer = done; });
    if (chosen === "fork") await page.fork("");
    return chosen !== null;
  }

  by("behind-fork").addEventListener("click", () => settle("fork"));
  by("behind-head").addEventListener("click", () => settle("head"));
  by("behind-cancel").addEventListener("click", () => { settle(null); by("message").focus(); });
  by("behind").addEventListener("keydown", (event) => { if (event.key === "Escape") by("behind-cancel").click(); });

  return {
    decided,
    /** Another commit is looked at: of the newest there is nothing to ask. */
    looked() {
      if (!answer) return;
      if (page.view.following) settle(null);
      else show();
    },
  };
}
