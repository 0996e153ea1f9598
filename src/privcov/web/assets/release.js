// Step 3: what it costs, what is left, and one press of a button that is paid once.

import { ask, latest, Refused } from "./api.js";
import { clear, find, focusFirst, later, make, options, refuse } from "./dom.js";
import { choice, keep, loss, request, state } from "./state.js";

const form = find("release-form");
const put = latest("quote");
let files = null;
let done = () => {};
let running = false;

export function setUp(start, finished) {
  files = start.files;
  done = finished;
  options(find("data"), files.data, { chosen: state.data, none: files.data.length ? "choose …" : "none here" });
  options(find("ledger"), files.ledgers, { chosen: state.ledger, none: files.ledgers.length ? "choose …" : "none here: open one below" });
  find("new-ledger").open = !files.ledgers.length;
  find("output").value = state.output || fresh();
  find("signing").textContent = start.signed ? `Releases are signed with the key ${start.signed}.` : "Releases are not signed. To sign them, start privcov serve --sign KEY.";
  for (const word of ["data", "ledger", "output", "mechanism"]) {
    find(word).addEventListener("input", () => {
      state[word] = find(word).value;
      if (word === "data" && !state.output) find("output").value = fresh();
      keep();
      quote();
    });
  }
  for (const word of ["frame", "cut", "focus", "by", "rest", "share"]) {
    find(`till-${word}`).addEventListener("input", () => {
      state[word] = find(`till-${word}`).value;
      find("till-cut").disabled = state.frame === "declared";
      keep();
      quote();
    });
  }
  find("knowing").addEventListener("change", quote);
  find("ledger-open").addEventListener("click", openLedger);
  form.addEventListener("submit", (event) => event.preventDefault()); // Enter in a field must not spend
  find("pay").addEventListener("click", pay);
  find("another").addEventListener("click", () => {
    state.receipt = null;
    find("knowing").checked = false;
    keep();
    armed(true);
    words("");
    quote();
    find("pay").focus();
  });
  if (state.request) follow();
  else if (state.receipt) settle(state.receipt);
}

function fresh() {
  const stem = (find("data").value || "people").split("/").pop().replace(/\.\w+$/, "");
  const taken = new Set(files.releases);
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? `${stem}.release.json` : `${stem}-${number}.release.json`;
    if (!taken.has(name)) return name;
  }
}

export function mechanisms(names) {
  const chosen = state.mechanism;
  find("mechanism").replaceChildren(make("option", { value: "auto" }, "auto: the least noise"), ...names.map((name) => make("option", { value: name }, name)));
  find("mechanism").value = ["auto", ...names].includes(chosen) ? chosen : "auto";
}

export function show() {
  state.data = find("data").value;
  state.ledger = find("ledger").value;
  for (const word of ["frame", "cut", "focus", "by", "rest", "share"]) find(`till-${word}`).value = state[word];
  find("till-cut").disabled = state.frame === "declared";
  quote();
}

function bars(balance) {
  find("balance").replaceChildren(
    make("p", { class: "soft small" }, balance.budget),
    ...balance.amounts.map((one) =>
      make("div", { class: "bar" },
        make("div", {}, make("b", {}, `${one.word}: ${one.left}`), ` of ${one.total} left`),
        make("meter", { min: "0", max: "100", value: String(100 - one.percent), "aria-label": `${one.word} left: ${one.left} of ${one.total}` }))),
    make("p", { class: "soft small" }, `${balance.releases} ${balance.releases === 1 ? "release" : "releases"} recorded.` + (balance.burned ? ` ${balance.burned} more paid for, without a recorded release.` : "")));
}

// Until the price is known there is nothing to agree to; after a payment there is nothing to quote until it is asked for.
function quote() {
  if (state.receipt) return;
  find("pay").disabled = true;
  quoteSoon();
}

const quoteSoon = later(() => {
  const pay = find("pay");
  if (state.receipt) return;
  find("refusal").textContent = "";
  if (!state.draft || !state.ledger) {
    find("balance").replaceChildren();
    find("quote-words").textContent = "";
    find("quote-frame").textContent = "";
    find("till").hidden = true;
    find("refusal").textContent = state.draft ? "Pick a ledger, or open a new one." : "Complete the schema first.";
    pay.disabled = true;
    return;
  }
  put({ draft: state.draft, loss: loss(), ledger: state.ledger, data: find("data").value, mechanism: state.mechanism, rows: state.rows, ...choice() }, (found) => {
    clear(form);
    bars(found.balance);
    if (state.receipt) return;
    verdict(found);
    const price = found.refusal ? "" : ` Price: ${found.price || "none"}.`;
    const stronger = found.stronger ? " It has less noise here and promises more than you asked for." : "";
    const strata = found.strata > 1 ? ` ${found.strata} matrices, one for each stratum.` : "";
    find("quote-words").textContent = `${found.mechanism}: ${found.promise}.${stronger}${strata}${price}`;
    find("quote-frame").textContent = found.frame;
    find("refusal").textContent = found.refusal;
    pay.textContent = found.price ? `Pay ${found.price} and release` : "Pay and release";
    pay.disabled = Boolean(found.refusal) || running || (found.verdict.startsWith("worse") && !find("knowing").checked);
  }, (error) => {
    if (!(error instanceof Refused)) throw error;
    refuse(form, error.errors);
    pay.disabled = true;
  });
}, 60);

// What the plan says of it, beside the price: whoever buys what is worse than nothing says so first.
function verdict(found) {
  const poor = found.verdict.startsWith("worse");
  find("till").hidden = !found.verdict;
  find("till").dataset.verdict = found.verdict;
  const spread = found.strata > 1 ? `spread evenly over ${found.strata} strata, each is ` : "as the plan has them, it is ";
  const rows = `For ${Number(state.rows.replaceAll(",", "")).toLocaleString("en")} rows, ${spread}`;
  find("till-words").textContent = found.verdict ? rows + found.verdicts[0].toLowerCase() + found.verdicts.slice(1) : "";
  find("exits").replaceChildren(...found.exits.map((one) => make("li", {}, one)));
  find("knowing-label").hidden = !poor;
  if (!poor) find("knowing").checked = false;
}

async function openLedger() {
  const delta = find("ledger-delta").value.trim();
  const budget = { kind: delta ? "approximate" : "pure", epsilon: find("ledger-epsilon").value.trim(), delta, neighbours: state.loss.neighbours };
  clear(form);
  try {
    const opened = await ask("ledger/open", { name: find("ledger-name").value.trim(), budget });
    files.ledgers.push(opened.ledger);
    state.ledger = opened.ledger;
    options(find("ledger"), files.ledgers, { chosen: opened.ledger, none: "choose …" });
    find("new-ledger").open = false;
    keep();
    find("ledger").focus();
    quote();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    refuse(form, error.errors.map((one) => ({ ...one, field: one.field && `ledger-${one.field}` })));
    focusFirst(form);
  }
}

async function pay() {
  if (running) return;
  running = true;
  find("pay").disabled = true;
  clear(form);
  words("Paying the ledger …");
  try {
    const name = request();
    const output = find("output").value.trim();
    await ask("release", { request: name, draft: state.draft, loss: loss(), ledger: state.ledger, data: find("data").value, output, mechanism: state.mechanism, ...choice() });
    follow();
  } catch (error) {
    running = false;
    words("");
    if (!(error instanceof Refused)) throw error;
    if (error.status) finish();
    refuse(form, error.errors);
    find("pay").disabled = false;
    focusFirst(form);
  }
}

// After a release the button is put away: a second press of a double click must find nothing to press.
function armed(ready) {
  find("pay").hidden = !ready;
  find("next").hidden = ready;
  find("offer").hidden = !ready;
  find("receipt").hidden = ready;
}

// What was bought, until another release is asked for.
function settle(job) {
  state.receipt = job;
  words(`Released: ${job.output}, by ${job.taken}.`, "done", job.doubts);
  const { file, digest, signed, paid, left, strata } = job.receipt;
  const facts = [["File", file], ...(strata ? [["Matrices", `${strata}, one for each stratum`]] : []), ["SHA-256", digest], ["Signature", signed ? `with the key ${signed}` : "none: it was not signed"], ["Paid for", paid], ["Left in the ledger", left.join("; ") || "nothing"]];
  find("receipt-facts").replaceChildren(...facts.flatMap(([word, value]) => [make("dt", {}, word), make("dd", {}, value)]));
  armed(false);
  ask("ledger", { ledger: job.ledger }).then(bars, () => {});
}

function words(text, kind = "", doubts = []) {
  find("job-words").textContent = text;
  find("job-doubts").replaceChildren(...doubts.map((one) => make("li", {}, one)));
  find("job").dataset.state = kind;
  find("progress").hidden = !running;
}

function finish() {
  running = false;
  state.request = "";
  keep();
}

async function follow() {
  running = true;
  find("pay").disabled = true;
  let job;
  try {
    job = await ask("job", { request: state.request });
  } catch (error) {
    running = false; // the name is kept: if the request was on its way after all, it is paid for once
    words("");
    quote();
    return;
  }
  const bar = find("progress");
  if (job.percent === null) bar.removeAttribute("value");
  else bar.value = job.percent;
  if (job.state === "done") {
    finish();
    settle(job);
    files.releases.push(job.output);
    state.release = job.output;
    state.output = "";
    find("output").value = fresh();
    keep();
    done(job);
  } else if (job.state === "refused" || job.state === "failed") {
    finish();
    words(job.error.text, job.state);
    quote();
  } else {
    words(job.state === "reading" ? "Reading the table …" : "Paying the ledger and drawing noise …", "busy");
    setTimeout(follow, 250);
  }
}
