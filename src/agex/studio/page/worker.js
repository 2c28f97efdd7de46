// The worker of the page in a tab: Pyodide, and the agent in it. Text in, text out.

let page = null;
let interrupt = null;

async function start({ name }) {
  const settings = await (await fetch("tab.json")).json();
  const wheels = Promise.all(settings.wheels.map(async (path) => (await fetch(path)).arrayBuffer()));
  const script = new URL(settings.pyodide, self.location);
  const { loadPyodide } = await import(script);
  say("Starting Python");
  const pyodide = await loadPyodide({ indexURL: new URL(".", script).href });
  // Where Python looks for packages: what code of the agent's may read of a library lies there, not where it works.
  const extractDir = pyodide.runPython("import site; site.getsitepackages()[0]");
  for (const wheel of await wheels) pyodide.unpackArchive(wheel, "wheel", { extractDir });
  if (self.crossOriginIsolated) {
    interrupt = new Int32Array(new SharedArrayBuffer(4));
    pyodide.setInterruptBuffer(interrupt);
  }
  say("Starting agex");
  const { open_page } = pyodide.pyimport("agex.studio.tab");
  page = await open_page(name, (text) => post({ steps: JSON.parse(text) }), (token) => post({ token }));
  for (const module of settings.modules) {
    const told = JSON.parse(await page.call("add_module", JSON.stringify({ name: module })));
    if (told?.error) throw new Error(`${module}: ${told.error.message}`);
  }
  return interrupt?.buffer ?? null;
}

const post = (message) => self.postMessage(message);
const say = (status) => post({ status });

/** Say an error in its own words: of one of Python's, without the traceback. */
function told(error) {
  const words = String(error.message ?? error).trim();
  if (!error.type) return words;
  const said = words.split("\n").findLastIndex((line) => line.split(":")[0].split(".").at(-1) === error.type);
  return said < 0 ? words : words.split("\n").slice(said).join("\n").replace(/^[\w.]+:?\s*/, "") || error.type;
}

let started = null; // a promise: what is asked meanwhile waits for it

self.onmessage = async ({ data: { id, method, given } }) => {
  try {
    if (method === "start") {
      started = start(given);
      post({ id, value: await started });
      return;
    }
    await started;
    const value = JSON.parse(await page.call(method, JSON.stringify(given)));
    if (value?.error && value.ok === undefined) post({ id, error: value.error.message });
    else post({ id, value });
  } catch (error) {
    post({ id, error: told(error) });
  }
};
