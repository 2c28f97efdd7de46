// Runs tests of the package in Pyodide, under node:  node run.mjs DIRECTORY [PYTEST ARGUMENTS]
// DIRECTORY holds node_modules/pyodide and wheels/*.whl. Exits as pytest does.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const directory = path.resolve(process.argv[2]);
const repository = fileURLToPath(new URL("../../..", import.meta.url));
const { loadPyodide } = await import(pathToFileURL(path.join(directory, "node_modules/pyodide/pyodide.mjs")));

const pyodide = await loadPyodide();
for (const name of fs.readdirSync(path.join(directory, "wheels")).sort()) {
  const wheel = new Uint8Array(fs.readFileSync(path.join(directory, "wheels", name)));
  pyodide.unpackArchive(wheel, "wheel", { extractDir: "/lib/python3.14/site-packages" });
}
pyodide.FS.mkdirTree("/repository");
pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: repository }, "/repository");
pyodide.FS.mkdirTree("/etc");
pyodide.FS.writeFile("/etc/passwd", "root:x:0:0::/root:/bin/sh\n"); // tests look for what every system has

pyodide.globals.set("arguments", pyodide.toPy(process.argv.slice(3)));
let status = 70; // of sysexits.h: the runner itself failed
try {
  status = pyodide.runPython(`
import os, sys
os.chdir("/repository")
sys.dont_write_bytecode = True
sys.path.insert(0, "/repository/tests/browser/node")
import blocking_loop
blocking_loop.install()
import pytest
int(pytest.main(["-p", "no:cacheprovider", "-p", "left_out", "-o", "faulthandler_timeout=0", *arguments]))
`);
} catch (error) {
  console.error(String(error.message).slice(0, 5000)); // not the object: node would print all of Pyodide's source
}
process.exit(status);
