// The data source of a browser tab: an agent in a worker of this page, and its history in IndexedDB.

import { by } from "./dom.js";

const MODEL = "agex-model"; // in sessionStorage: of this tab, through reloads, and gone with it

/** Open the source. The conversation is called what the address says: ?name=notes. */
export function openTab() {
  const name = new URLSearchParams(location.search).get("name") || "studio";
  const worker = new Worker("worker.js", { type: "module" });
  const waiting = new Map();
  const heard = { steps() {}, token() {}, status() {} };
  let interrupt = null;
  let branch = null;
  let asks = false; // whether the agent waits for an answer

  worker.onmessage = ({ data }) => {
    for (const kind of Object.keys(heard)) if (kind in data) heard[kind](data[kind]);
    if (data.id === undefined) return;
    const { done, failed } = waiting.get(data.id);
    waiting.delete(data.id);
    if ("error" in data) failed(new Error(data.error));
    else done(data.value);
  };
  worker.onerror = (event) => {
    for (const { failed } of waiting.values()) failed(new Error(event.message || "The worker could not be started."));
    waiting.clear();
  };

  function call(method, given = {}) {
    const id = crypto.randomUUID();
    worker.postMessage({ id, method, given });
    return new Promise((done, failed) => waiting.set(id, { done, failed }));
  }

  async function useModel({ url, model, key }) {
    await call("use_model", { url, model, key: key || null });
    sessionStorage.setItem(MODEL, JSON.stringify({ url, model, key }));
    by("model").querySelector("summary").textContent = `Model: ${model}`;
    by("model").open = false;
  }

  const source = {
    canRun: true,
    ask: (what, query = {}) => call("look", { what, query }),
    async fork(name, at) {
      const made = await call("fork", { name: name.trim() || null, at });
      await call("flush");
      branch = made.current;
      return { branch };
    },
    async choose(name) {
      if (name === branch) return;
      branch = (await call("switch", { branch: name })).current;
      await call("flush");
    },

    /** Start Python, open the conversation, and let the page's own controls work. */
    async begin(page) {
      heard.status = (words) => page.status(words, true);
      for (const id of ["composer", "model"]) by(id).hidden = false;
      page.status("Loading Python", true);
      by("activity").textContent = "Python is starting in this tab; what was done here before is shown then.";
      const shared = await call("start", { name });
      if (shared) interrupt = new Int32Array(shared);
      branch = (await call("branches")).current;
      const known = JSON.parse(sessionStorage.getItem(MODEL) ?? "null");
      if (known) {
        for (const part of ["url", "name", "key"]) by(`model-${part}`).value = known[part === "name" ? "model" : part] ?? "";
        await useModel(known);
      } else by("model").open = true;
      converse(page);
      takeFiles(page);
      page.status("Ready");
    },
  };

  function converse(page) {
    const { activity } = page;
    heard.steps = (steps) => {
      activity.told(steps);
      page.refresh();
    };
    heard.token = (token) => activity.token(token);

    async function send() {
      const message = by("message").value.trim();
      if (!message || activity.live) return;
      by("message").value = "";
      activity.begin(message);
      page.view.following = true;
      page.show();
      by("send").disabled = true;
      by("stop").hidden = false;
      page.status("Working", true);
      let words = "Ready";
      page.failed(null);
      try {
        const found = await call(asks ? "answer" : "ask", { message });
        asks = found.question === true;
        await call("flush");
        if (found.ok) words = `Done in ${found.seconds.toFixed(1)} s, ${found.turns} ${found.turns === 1 ? "turn" : "turns"}`;
        else if (asks) words = "The agent asks back: answer below";
        else if (found.error.kind === "TaskCancelled") words = "Stopped";
        else throw new Error(`${found.error.kind}: ${found.error.message}`);
      } catch (error) {
        page.failed(error);
      }
      activity.end();
      by("send").disabled = false;
      by("stop").hidden = true;
      await page.attempt(() => page.refresh());
      page.status(words);
    }

    by("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    by("message").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      }
    });
    by("stop").addEventListener("click", () => {
      if (interrupt) Atomics.store(interrupt, 0, 2); // SIGINT, for code that runs just now
      page.attempt(() => call("cancel"));
    });
    by("model-form").addEventListener("submit", (event) => {
      event.preventDefault();
      page.act(async () => {
        await useModel({ url: by("model-url").value, model: by("model-name").value, key: by("model-key").value });
        by("message").focus();
      });
    });
  }

  function takeFiles(page) {
    const take = (files) => page.act(async () => {
      for (const file of files) {
        await call("add_file", { path: file.name, data: await base64(file) });
        page.status(`Added ${file.name}`);
      }
      await call("flush");
      page.view.following = true;
      await page.refresh();
    });
    by("attach").addEventListener("click", () => by("files-input").click());
    by("files-input").addEventListener("change", async (event) => {
      await take([...event.target.files]);
      event.target.value = "";
    });
    let inside = 0; // elements entered and not left: the page's own count as several
    const isFiles = (event) => event.dataTransfer?.types.includes("Files");
    const over = (change) => {
      inside = Math.max(0, inside + change);
      by("drop").hidden = inside === 0;
    };
    addEventListener("dragenter", (event) => { if (isFiles(event)) over(1); });
    addEventListener("dragleave", (event) => { if (isFiles(event)) over(-1); });
    addEventListener("dragover", (event) => { if (isFiles(event)) event.preventDefault(); });
    addEventListener("drop", (event) => {
      if (!isFiles(event)) return;
      event.preventDefault();
      over(-inside);
      take([...event.dataTransfer.files]);
    });
  }

  return source;
}

/** Read a file as base64. */
function base64(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}
