// The data source of `agex studio`: a state of a process on this machine, over HTTP. Read-only but for forks and decisions.

const KEY = "agex-token";

/** Open the source. The token comes behind the # of the address, and stays in this tab. */
export function openServer() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
  const token = sessionStorage.getItem(KEY) ?? "";

  async function call(path, options = {}) {
    const headers = { Authorization: `Bearer ${token}`, ...options.headers };
    let response;
    try {
      response = await fetch(`/api/${path}`, { ...options, headers });
    } catch {
      throw new Error("The server does not answer: `agex studio` has ended, or was started anew.");
    }
    const document = await response.json();
    if (!response.ok) throw new Error(document.error);
    return document;
  }

  const tell = (path, body) =>
    call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

  return {
    canRun: false,
    ask: (what, query = {}) => call(`${what}?${new URLSearchParams(query)}`),
    fork: (name, at) => tell("fork", { name, at }),
    decide: (decision) => tell("decide", decision),
    async choose() {},
    /** Call back whenever somebody committed or branched: another process writes this state. */
    watch(timeline, changed, failed) {
      let known = headsOf(timeline);
      let down = false;
      const look = async () => {
        if (document.hidden) return;
        try {
          const heads = headsOf(await call("heads"));
          if (heads !== known) changed();
          known = heads;
          if (down) failed(null);
          down = false;
        } catch (error) {
          down = true;
          failed(error);
        }
      };
      setInterval(look, 1500);
      document.addEventListener("visibilitychange", look);
    },
  };
}

const headsOf = ({ branches, tags }) => JSON.stringify([branches, tags]);
