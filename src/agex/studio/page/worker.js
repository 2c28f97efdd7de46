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

self.onmessage = async ({ data: { id, method, given } }) => {
  try {
    if (method === "start") post({ id, value: await start(given) });
    else {
      const value = JSON.parse(await page.call(method, JSON.stringify(given)));
      if (value?.error && value.ok === undefined) post({ id, error: value.error.message });
      else post({ id, value });
    }
  } catch (error) {
    post({ id, error: String(error.message ?? error) });
  }
};
