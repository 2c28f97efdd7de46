// placeholder until the worker
export function openTab() { throw new Error("tab"); }
