// Step 2: what a budget buys, before it is spent. Every number here was computed by the server.

import { ask, latest, Refused } from "./api.js";
import { chart, clear, find, later, make, options, refuse, rows } from "./dom.js";
import { mentioned, role } from "./schema.js";
import { choice, keep, loss, state } from "./state.js";

const form = find("plan-form");
const regression = find("regression-form");
const put = latest("plan");
let stops = {};
let summary = null;
let again = 0;
let guessing = []; // the columns whose guesses are on the page
let forecast = false; // whether a regression was asked for: it follows every change from then on

export function setUp(start) {
  stops = start.stops;
  for (const word of ["epsilon", "delta", "rho", "rows"]) slider(word);
  for (const radio of form.querySelectorAll('input[type="radio"]')) {
    radio.checked = state.loss[radio.name] === radio.value;
    radio.addEventListener("change", () => {
      state.loss[radio.name] = radio.value;
      visible();
      ask_plan();
    });
  }
  for (const id of ["word", "one", "other"]) {
    find(id).addEventListener("change", () => {
      state.question[id] = find(id).value;
      visible();
      ask_plan();
    });
  }
  find("purpose").value = state.purpose;
  find("purpose").addEventListener("change", () => {
    state.purpose = find("purpose").value;
    ask_plan();
  });
  for (const word of ["frame", "cut", "focus", "by", "rest", "share", "sizes"]) {
    find(word).addEventListener("input", () => {
      state[word] = find(word).value;
      find("cut").disabled = state.frame === "declared";
      ask_plan();
    });
  }
  find("correlations").addEventListener("input", () => {
    const lines = find("correlations").value.split("\n").filter((line) => line.trim());
    state.draft.correlations = lines.map((line) => {
      const at = line.lastIndexOf("="); // a name may have one too
      return at < 0 ? { pair: line.trim(), value: "" } : { pair: line.slice(0, at).trim(), value: line.slice(at + 1).trim() };
    });
    keep();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && location.hash === "#plan") ask_plan(); // what was simulated meanwhile
  });
  regression.addEventListener("submit", (event) => {
    event.preventDefault();
    ask_regression();
  });
  find("formula").value = state.formula;
  find("formula").addEventListener("input", () => {
    state.formula = find("formula").value;
    keep();
    guessSoon();
  });
  find("even").addEventListener("click", even);
  find("guesses").addEventListener("input", guessed);
  visible();
}

// A slider moves over exact decimal texts that the server sent; what is typed beside it may be any other.
function slider(word) {
  const text = find(word);
  const range = find(`${word}-slider`);
  const values = stops[word].map(Number);
  const get = () => (word === "rows" ? state.rows : state.loss[word]);
  const set = (value) => {
    if (word === "rows") state.rows = value;
    else state.loss[word] = value;
    range.setAttribute("aria-valuetext", value);
  };
  const place = () => {
    const wanted = Number(get().replaceAll(",", ""));
    const above = values.findIndex((value) => value >= wanted);
    range.value = above < 0 ? values.length - 1 : above;
  };
  range.min = 0;
  range.max = values.length - 1;
  range.step = 1;
  text.value = get();
  set(get());
  place();
  range.addEventListener("input", () => {
    text.value = stops[word][Number(range.value)];
    set(text.value);
    ask_plan({ chart: word !== "delta" });
  });
  text.addEventListener("input", () => {
    set(text.value.trim());
    place();
    ask_plan();
  });
}

const drawSoon = later(() => ask_plan(), 200);

function visible() {
  const kind = state.loss.kind;
  const shown = { epsilon: kind !== "zcdp", delta: kind === "approximate", rho: kind === "zcdp", rows: true };
  for (const block of form.querySelectorAll(".slider")) block.hidden = !shown[block.dataset.amount];
  find("one").parentElement.hidden = state.question.word === "frobenius";
  find("other").parentElement.hidden = state.question.word !== "covariance";
}

// A schema that holds together, or null.
export function schema(found) {
  summary = found;
  if (!found) return;
  const names = found.features.filter((name) => name !== "(Intercept)");
  const constant = found.features.length > names.length;
  find("word").querySelector('[value="mean"]').disabled = !constant;
  if (!constant && state.question.word === "mean") state.question.word = "variance";
  find("word").value = state.question.word;
  options(find("one"), names, { chosen: state.question.one });
  options(find("other"), names, { chosen: state.question.other || names[1] });
  state.question.one = find("one").value;
  state.question.other = find("other").value;
  visible();
  drawGuesses();
  warmSoon();
}

// Asked once before anyone looks, so that what must be simulated for this many columns has begun.
const warmSoon = later(() => {
  if (location.hash !== "#plan") ask_plan({ chart: false });
}, 400);

export function show() {
  for (const word of ["frame", "cut", "focus", "by", "rest", "share", "sizes"]) find(word).value = state[word];
  find("cut").disabled = state.frame === "declared";
  if (!summary) return;
  ask_plan();
  if (state.formula) ask_regression();
}

// The room a chart has, so that its text is drawn in its own size and not shrunk.
function room(id) {
  return String(Math.max(280, Math.min(780, find(id).clientWidth || 440)));
}

function wanted() {
  return { draft: state.draft, rows: state.rows, loss: loss(), ...choice(), sizes: state.sizes, ...state.question };
}

function ask_plan({ chart: whole = true } = {}) {
  keep();
  clearTimeout(again);
  if (!summary) return;
  put({ ...wanted(), chart: whole, width: room("plan-chart") }, answered, refused);
  if (state.formula && forecast) regressSoon();
}

function refused(error) {
  if (!(error instanceof Refused)) throw error;
  refuse(form, error.errors);
  if (error.errors.some((one) => ["sizes", "rest", "share"].includes(one.field))) find("more-strata").open = true;
  find("verdict").classList.add("stale");
}

function answered(found) {
  clear(form);
  const verdict = find("verdict");
  verdict.classList.remove("stale");
  parted(found.strata);
  if (found.ready) {
    verdict.dataset.verdict = found.verdict;
    find("error-size").textContent = found.headline;
    find("error-unit").textContent = found.unit;
    find("verdict-words").textContent = found.verdicts;
    find("choice-words").textContent = found.words;
    find("frame-words").textContent = found.frames;
    find("error-head").textContent = "Error";
    rows(find("mechanisms"), found.mechanisms.map((line) => [
      { text: line.mechanism + (line.exact ? "" : " †"), class: line.chosen ? "chosen" : null },
      line.promise,
      { text: line.error, class: "num" },
      { text: line.frobenius, class: "num" },
      { text: line.verdict, class: `tag ${line.verdict.split(" ")[0]}` },
    ]).concat(found.pending.map((name) => [{ text: name, class: "soft" }, "", { text: "…", class: "num" }, { text: "…", class: "num" }, { text: "simulating", class: "soft" }])));
    rows(find("column-errors"), found.columns.map((line) => [line.column, { text: line.mean, class: "num" }, { text: line.variance, class: "num" }]));
    find("refused").replaceChildren(...found.refused.map((no) => make("li", {}, make("b", {}, no.mechanism), `: ${no.reason}`)));
    find("mechanism-notes").textContent = found.notes;
  } else {
    find("error-size").textContent = "…";
    find("error-unit").textContent = "";
    find("verdict-words").textContent = found.words;
    find("choice-words").textContent = "";
    find("frame-words").textContent = "";
  }
  if (found.chart) chart(find("plan-chart"), found.chart);
  else if (location.hash === "#plan") drawSoon(); // numbers came first; the picture follows once nothing moves
  const open = found.pending.length + (found.unfinished || 0);
  find("plan-pending").textContent = open ? `Some errors depend on the table and are being simulated: ${open} to go.` : "";
  if (open && !document.hidden && location.hash === "#plan") again = setTimeout(() => ask_plan(), 1200);
}

// What each stratum would be worth, where columns are named that make some.
function parted(strata) {
  find("strata-plan").hidden = !strata;
  if (!strata) return;
  rows(find("strata-lines"), strata.lines.map(([name, count, verdict]) => [name, { text: count, class: "num" }, { text: verdict, class: `tag ${verdict.split(" ")[0]}` }]));
  find("strata-more").textContent = strata.more;
  find("strata-words").textContent = strata.words;
}

// The regression: guesses for the columns that the formula names, each with the fields that hold its guess.
function used() {
  const named = mentioned(state.formula);
  const all = named(".");
  const plain = state.draft.columns.filter((column) => !role(column)).map((column) => ({ name: column.name, kind: column.kind, to: column }));
  const made = state.draft.derived.filter((one) => one.use && summary?.derived[one.name]).flatMap((one) => {
    const { kind, made: names } = summary.derived[one.name];
    return names.map((name) => ({ name, kind, to: name === one.name ? one : (one.guesses[name] ||= { mean: "", std: "", shares: "" }) }));
  });
  return [...plain, ...made].filter((one) => all || named(one.name));
}

function drawGuesses() {
  const place = find("guesses");
  if (!state.draft) return;
  if (document.activeElement !== find("correlations")) {
    find("correlations").value = state.draft.correlations.map((one) => `${one.pair} = ${one.value}`).join("\n");
  }
  guessing = used();
  const input = (at, word, label) =>
    make("div", { class: "bound" }, make("label", { for: `g${at}-${word}` }, label),
      make("input", { id: `g${at}-${word}`, "data-guess": `${at}.${word}`, value: guessing[at].to[word], inputmode: "decimal", spellcheck: "false" }));
  place.replaceChildren(...guessing.map((one, at) =>
    make("fieldset", { class: "guess" }, make("legend", {}, one.name),
      ...(one.kind === "numeric" ? [input(at, "mean", "mean"), input(at, "std", "std. dev.")] : [input(at, "shares", "shares")]))));
}

const guessSoon = later(drawGuesses, 150);
const regressSoon = later(() => ask_regression(), 250);

function guessed(event) {
  const [at, word] = event.target.dataset.guess.split(".");
  guessing[Number(at)].to[word] = event.target.value;
  keep();
}

async function even() {
  const found = await ask("schema/guess", { draft: state.draft });
  for (const guess of found.guesses) {
    const to = used().find((one) => one.name === guess.name)?.to;
    if (to) for (const word of ["mean", "std", "shares"]) if (guess[word]) to[word] ||= guess[word];
  }
  keep();
  drawGuesses();
  ask_regression();
}

async function ask_regression() {
  forecast = true;
  try {
    const found = await ask("regression", { ...wanted(), formula: state.formula, width: room("expected-curves") });
    clear(regression);
    find("regression-result").classList.remove("stale");
    if (!found.ready) {
      setTimeout(ask_regression, 1000);
      return;
    }
    find("regression-result").hidden = false;
    rows(find("expected-terms"), found.terms.map((line) => [line.term, { text: line.half_width, class: "num" }, { text: line.error, class: "num" }, { text: line.privacy, class: "num" }]));
    chart(find("expected-chart"), found.chart);
    chart(find("expected-curves"), found.curves);
    find("expected-words").textContent = found.words;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    // What belongs to the formula is said beside it; a budget that is being typed leaves the last answer, dimmed.
    const own = error.errors.filter((one) => !one.field || one.field === "formula" || regression.querySelector(`[data-field="${one.field}"]`));
    if (own.length) find("regression-result").hidden = true;
    else find("regression-result").classList.add("stale");
    refuse(regression, own);
  }
}
