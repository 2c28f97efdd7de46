// A session of a tab in Pyodide's own event loop, under node: the page's fetch, an interrupt, levels that refuse.
//   node session.mjs DIRECTORY
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

const directory = path.resolve(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(path.join(directory, "node_modules/pyodide/pyodide.mjs")));
const pyodide = await loadPyodide();
for (const name of fs.readdirSync(path.join(directory, "wheels")).sort()) {
  const wheel = new Uint8Array(fs.readFileSync(path.join(directory, "wheels", name)));
  pyodide.unpackArchive(wheel, "wheel", { extractDir: "/lib/python3.14/site-packages" });
}

// A server that speaks chat completions and streams what stands next in the list.
const answers = [];
const requests = [];
const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    requests.push({ headers: request.headers, body: JSON.parse(Buffer.concat(parts)) });
    const next = answers.shift();
    if (typeof next === "number") {
      response.writeHead(next, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: "not today" } }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const content of next) {
      response.write(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`);
    }
    const usage = { prompt_tokens: 5, completion_tokens: 2 };
    response.end(`data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: "stop" }], usage })}\n\ndata: [DONE]\n\n`);
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${server.address().port}/v1`;

const python = (code) => ["```python\n", code, "\n```"];
const { Tab } = pyodide.pyimport("agex.browser");
const { Memory } = pyodide.pyimport("agex");
const tab = Tab(Memory());
const call = async (method, given = {}) => JSON.parse(await tab.call(method, JSON.stringify(given)));
const events = [];
let written = "";
tab.on_event = (json) => events.push(JSON.parse(json));
tab.on_token = (text) => (written += text);

async function main() {
  await test("a task is done over fetch, and what it did is told and kept", async () => {
    await call("use_model", { url, model: "tiny", key: "secret" });
    await call("add_file", { path: "sales.csv", data: btoa("day,sum\n1,20\n2,22\n") });
    answers.push(python("import csv\nrows = list(csv.DictReader(open('sales.csv')))\ntotal = sum(int(r['sum']) for r in rows)\ntask_success(total)"));
    const answer = await call("ask", { message: "add it up" });
    assert.deepEqual([answer.ok, answer.value.json], [true, 42]);
    assert.equal(requests[0].headers.authorization, "Bearer secret");
    assert.equal(requests[0].body.stream, true);
    assert.ok(written.includes("total = sum"));
    assert.deepEqual(events.map((event) => event.type), ["task_start", "action", "success"]);
    const { variables } = await call("snapshot");
    assert.deepEqual(variables.map((each) => each.name), ["rows", "total"]);
    assert.ok(!JSON.stringify(await call("events")).includes("secret"));
  });

  await test("a program that does not end is ended by the clock, and says so to the agent", async () => {
    const { Limits, Sandbox } = pyodide.pyimport("agex.sandbox");
    const limits = Limits.callKwargs({ seconds: 0.3 });
    const result = Sandbox.callKwargs({ limits }).exec("while True:\n    try:\n        while True: pass\n    except BaseException: pass");
    assert.match(result.error.toString(), /longer than 0.3 s/);
    assert.equal(result.enforcement.time, "flag");
  });

  await test("the agent's code sees that it is in the event loop, and async functions are awaited", async () => {
    answers.push(python("import asyncio\nawait asyncio.sleep(0.01)\ntask_success('awaited')"));
    assert.equal((await call("ask", { message: "wait" })).value.text, "awaited");
  });

  await test("a server that fails is an error of the task", async () => {
    answers.push(404);
    const answer = await call("ask", { message: "go" });
    assert.deepEqual([answer.ok, answer.error.kind], [false, "LLMFail"]);
    assert.match(answer.error.message, /not today/);
  });

  await test("a server that is not there is an error of the task, and leads to nothing of the page", async () => {
    const other = pyodide.runPython(`
from agex import Agent
from agex.browser import FetchModel
async def other(url):
    agent = Agent(model=FetchModel(url, "m"), llm_retries=0)
    @agent.task
    async def work() -> int:
        """Work."""
    try:
        await work()
    except Exception as error:
        chain = []
        while error is not None:
            chain.append(type(error).__name__)
            error = error.__cause__ or error.__context__
        return " ".join(chain)
other`);
    const chain = await other("http://127.0.0.1:1/v1");
    assert.match(chain, /LLMFail/);
  });

  await test("an interrupt of the page ends the task", async () => {
    const buffer = new Uint8Array(new SharedArrayBuffer(1));
    pyodide.setInterruptBuffer(buffer);
    answers.push(python("print('running')\nwhile True:\n    try:\n        while True: pass\n    except: pass"));
    const interrupter = new Worker("const { workerData } = require('node:worker_threads'); setTimeout(() => { workerData[0] = 2; }, 3000);", { eval: true, workerData: buffer });
    const answer = await call("ask", { message: "never end" });
    await interrupter.terminate();
    pyodide.setInterruptBuffer(undefined);
    assert.deepEqual([answer.ok, answer.error.kind], [false, "TaskCancelled"]);
    assert.equal((await call("status")).running, false);
  });

  await test("levels that need processes refuse before any model is asked", async () => {
    const before = requests.length;
    const found = pyodide.runPython(`
from agex import Agent
from agex.errors import IsolationUnavailable
from agex.isolation import ProcessExecutor, KernelExecutor, ContainerExecutor
found = []
for make in (lambda: Agent(isolation="process"), lambda: Agent(isolation="kernel"), lambda: Agent(isolation="container"),
             ProcessExecutor, KernelExecutor, ContainerExecutor, lambda: __import__("agex.sandbox").sandbox.Sandbox(
                 limits=__import__("agex.sandbox").sandbox.Limits(memory_mb=100)).exec("1")):
    try:
        make()
        found.append("none")
    except IsolationUnavailable as error:
        found.append("refused")
" ".join(found)`);
    assert.equal(found, "refused refused refused refused refused refused refused");
    assert.equal(requests.length, before);
  });
}

let passed = 0;
async function test(name, body) {
  try {
    await body();
  } catch (error) {
    console.error(`FAILED ${name}\n${String(error.stack ?? error).slice(0, 4000)}`);
    console.log(`${passed} passed, 1 failed`);
    process.exit(1);
  }
  passed += 1;
}

await main();
server.close();
console.log(`${passed} passed, 0 failed`);
process.exit(0);
