// Questions to the server. The token comes with the address, leaves the address bar, and stays in this tab.

const KEY = "privcov.token";

function token() {
  const given = /^#token=([0-9a-f]{64})$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem(KEY, given[1]);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY) || "";
}

const TOKEN = token();

export class Refused extends Error {
  constructor(status, errors) {
    super(errors.map((error) => error.text).join(" "));
    this.status = status;
    this.errors = errors;
  }
}

async function send(name, question, signal) {
  const reply = await fetch(`/api/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-privcov-token": TOKEN },
    body: JSON.stringify(question),
    credentials: "omit",
    signal,
  }).catch((reason) => {
    if (reason.name === "AbortError") throw reason;
    throw new Refused(0, [{ field: null, text: "The workbench does not answer. Is privcov serve still running?" }]);
  });
  if (reply.ok) return reply;
  const errors = await reply.json().then((body) => body.errors).catch(() => null);
  throw new Refused(reply.status, errors || [{ field: null, text: `The workbench answered ${reply.status}.` }]);
}

export async function ask(name, question = {}) {
  return (await send(name, question)).json();
}

// One question of a kind at a time: while one is on its way only the newest of those that follow is kept.
export function latest(name) {
  let busy = false;
  let next = null;
  return function put(question, answer, refuse) {
    if (busy) {
      next = [question, answer, refuse];
      return;
    }
    busy = true;
    ask(name, question)
      .then(answer, refuse)
      .finally(() => {
        busy = false;
        if (next) {
          const waiting = next;
          next = null;
          put(...waiting);
        }
      });
  };
}

export async function download(question) {
  const reply = await send("download", question);
  const name = /filename="([^"]+)"/.exec(reply.headers.get("content-disposition") || "");
  const address = URL.createObjectURL(await reply.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name ? name[1] : "download";
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
