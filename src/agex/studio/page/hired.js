// The worker of a tab, as the page calls it: a method and what it is given, and a promise of what it gives.

/** Start a worker. `heard` are what is called with what it tells: steps, token, status. */
export function startWorker(heard) {
  const worker = new Worker("worker.js", { type: "module" });
  const waiting = new Map();
  let shared = null; // memory of both, where the page may have some: a 2 in it is SIGINT

  worker.onmessage = ({ data }) => {
    for (const kind of Object.keys(heard)) if (kind in data) heard[kind](data[kind]);
    if (data.id === undefined) return;
    const { done, failed } = waiting.get(data.id);
    waiting.delete(data.id);
    if ("error" in data) failed(new Error(data.error));
    else done(data.value);
  };
  worker.onerror = (event) => giveUp(new Error(event.message || "The worker could not be started."));

  function giveUp(error) {
    for (const { failed } of waiting.values()) failed(error);
    waiting.clear();
  }

  function call(method, given = {}) {
    const id = crypto.randomUUID();
    worker.postMessage({ id, method, given });
    return new Promise((done, failed) => waiting.set(id, { done, failed }));
  }

  return {
    call,
    async start(given) {
      const buffer = await call("start", given);
      if (buffer) shared = new Int32Array(buffer);
    },
    /** Ask the task that runs to end. */
    interrupt() {
      if (shared) Atomics.store(shared, 0, 2); // for code that runs just now
      return call("cancel");
    },
    /** End Python with all that it does. Whoever waits for it is told an error that is `stopped`. */
    end() {
      worker.terminate();
      giveUp(Object.assign(new Error("Python was ended."), { stopped: true }));
    },
  };
}
