// The data source of a browser tab: an agent in a worker of this page, and its history in IndexedDB.

import { by, fill } from "./dom.js";
import { startWorker } from "./hired.js";
import { whereTo } from "./behind.js";

const MODEL = "agex-model"; // in sessionStorage: of this tab, through reloads, and gone with it
const PATIENCE = 1500; // milliseconds that a stopped task has to end by itself; then its worker goes

/** Open the source. The conversation is called what the address says: ?name=notes. */
export function openTab() {
  const name = new URLSearchParams(location.search).get("name") || "studio";
  const heard = { steps() {}, token() {}, status() {} };
  let worker = null;
  let model = null; // that is asked
  let branch = null;
  let ready = false;
  let asks = false; // whether the agent waits for an answer

  const call = (method, given) => worker.call(method, given);

  async function useModel(settings) {
    const { url, model: called, key } = settings;
    await call("use_model", { url, model: called, key: key || null });
    model = settings;
    sessionStorage.setItem(MODEL, JSON.stringify(settings));
    by("model").querySelector("summary").textContent = `Model: ${called}`;
    by("model").open = false;
  }

  /** Start Python with the conversation in it. */
  async function start() {
    worker = startWorker(heard);
    await worker.start({ name });
    branch = (await call("branches")).current;
    setAsks(false); // a question is its run's, and that is gone
    if (model) await useModel(model);
  }

  function setAsks(now) {
    asks = now;
    by("message").placeholder = asks ? "Answer the agent's question." : "Ask for something. Drop data files anywhere on the page.";
  }

  const source = {
    canRun: true,
    ask: (what, query = {}) => call("look", { what, query }),
    async fork(as, at) {
      const made = await call("fork", { name: as.trim() || null, at });
      await call("flush");
      branch = made.current;
      setAsks(false);
      return { branch };
    },
    async choose(wanted) {
      if (wanted === branch) return;
      branch = (await call("switch", { branch: wanted })).current;
      setAsks(false);
      await call("flush");
    },

    /** Start Python, open the conversation, and let the page's own controls work. */
    async begin(page) {
      heard.status = (words) => page.status(words, true);
      if (await isOpenElsewhere(name)) {
        close(page, "Open in another tab");
        throw new Error(`"${name}" is open in another tab: go on there, or close it and reload this page.`);
      }
      for (const id of ["composer", "model"]) by(id).hidden = false;
      page.status("Loading Python", true);
      fill(by("activity"), "Python is starting in this tab; what was done here before is shown then.");
      model = JSON.parse(sessionStorage.getItem(MODEL) ?? "null");
      if (model) {
        for (const part of ["url", "name", "key"]) by(`model-${part}`).value = model[part === "name" ? "model" : part] ?? "";
      } else by("model").open = true;
      converse(page);
      takeFiles(page);
      try {
        await start();
        await page.refresh(); // a message has its place in a timeline
      } catch (error) {
        close(page, "Not started");
        throw error;
      }
      ready = true;
      page.status("Ready");
    },
    looked() {
      where?.looked();
    },
  };
  let where = null;

  /** There is nothing to show: leave what is wrong alone on the page. */
  function close(page, words) {
    document.querySelector("main").hidden = true;
    document.querySelector(".branch").hidden = true;
    page.status(words);
  }

  function converse(page) {
    const { activity } = page;
    where = whereTo(page);
    heard.steps = (steps) => {
      activity.told(steps);
      page.attempt(() => page.refresh());
    };
    heard.token = (token) => activity.token(token);

    function wantModel() {
      by("model").open = true;
      page.failed(new Error("No model is chosen yet: fill in its endpoint and name under Model, below your message. What you wrote stays."));
      by("model-url").focus();
    }

    async function send() {
      const message = by("message").value.trim();
      if (!message || !ready || activity.live) return;
      if (!model) {
        wantModel();
        return;
      }
      page.failed(null);
      if (!(await where.decided())) return;
      by("message").value = "";
      activity.begin(message);
      page.view.following = true;
      page.show();
      by("send").disabled = true;
      by("stop").hidden = false;
      page.status("Working", true);
      let words = "Ready";
      let carriedOut = false;
      try {
        const found = await call(asks ? "answer" : "ask", { message });
        carriedOut = true;
        setAsks(found.question === true);
        await call("flush");
        if (found.ok) words = `Done in ${found.seconds.toFixed(1)} s, ${found.turns} ${found.turns === 1 ? "turn" : "turns"}`;
        else if (asks) words = "The agent asks back: answer below";
        else if (found.error.kind === "TaskCancelled") words = "Stopped";
        else throw new Error(`${found.error.kind}: ${found.error.message}`);
      } catch (error) {
        if (error.stopped) words = await startAgain();
        else page.failed(error);
        if (!carriedOut && !by("message").value) by("message").value = message; // nothing of it is in the history
      }
      activity.end();
      by("send").disabled = false;
      by("stop").hidden = true;
      await page.attempt(() => page.refresh());
      page.status(words);
    }

    /** Python was ended with the task in it: have it anew, with what was committed. */
    async function startAgain() {
      ready = false;
      page.status("Stopped; Python starts again", true);
      try {
        // The browser gives the lock of a worker back only when that has really ended.
        await navigator.locks.request(lockOf(name), () => {});
        await start();
        ready = true;
        return "Stopped; Python was started again";
      } catch (error) {
        page.failed(error);
        return "Stopped";
      }
    }

    function stop() {
      const { live } = activity;
      page.attempt(() => worker.interrupt());
      setTimeout(() => { if (activity.live === live && ready) worker.end(); }, PATIENCE);
    }

    by("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      page.attempt(send);
    });
    by("message").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        page.attempt(send);
      }
    });
    by("stop").addEventListener("click", stop);
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
      if (!ready || !files.length || !(await where.decided())) return;
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

/** Say whether another tab of this browser has the conversation: it holds the lock that the store takes. */
async function isOpenElsewhere(name) {
  const { held = [] } = (await navigator.locks?.query()) ?? {};
  return held.some((lock) => lock.name === lockOf(name));
}

const lockOf = (name) => `agex/${name}`;

/** Read a file as base64. */
function base64(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}
