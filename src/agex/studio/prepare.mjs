// What a site needs done in Pyodide itself, under node: its packages are tried, and its modules compiled.
//   node prepare.mjs '{"pyodide": FOLDER, "site": FOLDER, "wheels": [NAME], "modules": [NAME]}'
// The folder of the site has the wheels as they came in wheels/, and Pyodide in pyodide/; they are replaced there.
// Prints {} or {"error": WORDS}.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const { site, wheels, modules } = JSON.parse(process.argv[2]);
const folder = path.join(site, "pyodide");
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: folder + path.sep });
const packages = python.runPython("import site; site.getsitepackages()[0]");
for (const name of wheels) {
  const wheel = new Uint8Array(fs.readFileSync(path.join(site, "wheels", name)));
  python.unpackArchive(wheel, "wheel", { extractDir: packages });
}
python.FS.mkdirTree("/site");
python.FS.mount(python.FS.filesystems.NODEFS, { root: site }, "/site");
python.globals.set("given", JSON.stringify({ wheels, modules, packages }));
console.log(python.runPython(`
import importlib, json, os, sys, traceback
from pathlib import Path

given = json.loads(given)

def why_not(name, tab):
    try:
        tab.add_module(name)
    except Exception as error:
        return traceback.format_exception_only(error)[-1].strip()

def prepared():
    try:
        from agex.browser import Tab
        from agex.state import Memory
        importlib.import_module("agex.studio.tab")
    except ImportError as error:
        return {"error": f"agex cannot be imported there, a wheel is missing or of a wrong version: {error}"}
    for name in given["modules"]:
        why = why_not(name, Tab(Memory()))
        if why is not None:
            return {"error": f"--module {name} is not usable there: {why}"}
    from agex.studio.bytecode import with_bytecode
    library = "python_stdlib.zip"
    zipped = next(path for path in sys.path if path.endswith(".zip"))
    archives = [(Path("/site/pyodide", library), zipped, True)]
    archives += [(Path("/site/wheels", name), given["packages"], False) for name in given["wheels"]]
    for archive, place, is_zip in archives:
        made = archive.with_name(archive.name + ".new")
        with_bytecode(archive, made, place=place, zipped=is_zip)
        os.chmod(made, 0o644)
        os.replace(made, archive)
    return {}

json.dumps(prepared())
`));
process.exit(0);
