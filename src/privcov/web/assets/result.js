// Step 4: a release in words, charts and models; and its files.

import { ask, download, Refused } from "./api.js";
import { clear, find, make, options, refuse, report, rows } from "./dom.js";
import { keep, state } from "./state.js";

const step = find("step-result");
let files = null;
let asked = 0; // the newest look at a release; what older ones find comes too late
const SECTIONS = ["overview", "promise", "matrix", "spectrum", "columns"];
const QUICKEST = ["promise", "overview", "columns", "matrix", "spectrum"];

export function setUp(start) {
  files = start.files;
  find("release-file").addEventListener("change", () => {
    state.release = find("release-file").value;
    state.stratum = "";
    state.against = "";
    state.fit = "";
    keep();
    show();
  });
  find("stratum").addEventListener("change", () => {
    state.stratum = find("stratum").value;
    keep();
    show();
  });
  find("against-form").addEventListener("submit", (event) => {
    event.preventDefault();
    compare();
  });
  find("fit-form").addEventListener("submit", (event) => {
    event.preventDefault();
    fit(find("fit-formula").value);
  });
  find("conservative").addEventListener("change", () => {
    state.conservative = find("conservative").checked;
    keep();
    if (find("fit-formula").value) fit(find("fit-formula").value);
  });
  for (const button of step.querySelectorAll("[data-download]")) {
    button.addEventListener("click", () =>
      download({ ...wanted(), what: button.dataset.download, formula: state.fit, conservative: state.conservative }).catch(refused));
  }
}

// The file, and which of its strata where it has several.
const wanted = () => ({ release: state.release, stratum: state.stratum });

// Said where the buttons are, whatever field it is about.
function refused(error) {
  if (!(error instanceof Refused)) throw error;
  refuse(step, error.errors.map((one) => ({ ...one, field: one.field === "formula" ? null : one.field })));
}

export async function show() {
  const names = [...new Set(files.releases)];
  options(find("release-file"), names, { chosen: state.release });
  state.release = find("release-file").value;
  find("result-empty").hidden = names.length > 0;
  for (const button of step.querySelectorAll("[data-download]")) button.disabled = !names.length;
  find("result").hidden = true;
  find("fit").hidden = true;
  if (!names.length) return;
  clear(step);
  find("fit-formula").value = state.fit;
  find("conservative").checked = state.conservative;
  find("sections").replaceChildren(...SECTIONS.map((name) => make("section", { class: `card ${name}` }, make("p", { class: "waiting", role: "status" }, "Computing …"))));
  const look = (asked += 1);
  try {
    const { names: strata, total } = await ask("strata", { release: state.release });
    if (look !== asked) return;
    find("stratum-field").hidden = !strata.length;
    options(find("stratum"), total ? [...strata, total] : strata, { chosen: state.stratum });
    state.stratum = find("stratum").value;
    others(strata);
    for (const name of QUICKEST) {
      const found = await ask("result", { ...wanted(), section: name });
      if (look !== asked) return;
      place(name, found.sections[0]);
      find("result").hidden = false;
    }
    if (state.fit) fit(state.fit);
  } catch (error) {
    if (look === asked) refused(error);
  }
}

// The strata that the one shown can be compared with; a total holds them all, and is compared with none.
function others(strata) {
  const rest = strata.includes(state.stratum) ? strata.filter((name) => name !== state.stratum) : [];
  find("differences").hidden = !rest.length;
  find("difference").hidden = true;
  options(find("against"), rest, { chosen: state.against });
}

async function compare() {
  state.against = find("against").value;
  keep();
  clear(find("against-form"));
  try {
    const found = await ask("differences", { ...wanted(), against: state.against, formula: find("against-formula").value });
    find("difference-heads").replaceChildren(...found.heads.map((head, at) => make("th", { scope: "col", class: at ? "num" : null }, head)));
    rows(find("difference-lines"), found.lines.map(([name, ...cells]) => [name, ...cells.map((text) => ({ text, class: "num" }))]));
    find("difference-words").textContent = found.words;
    find("difference").hidden = false;
  } catch (error) {
    find("difference").hidden = true;
    if (!(error instanceof Refused)) throw error;
    refuse(find("against-form"), error.errors);
  }
}

function place(name, section) {
  const body = make("div");
  report(body, section.body);
  find("sections").querySelector(`.${name}`).replaceChildren(make("h2", {}, section.heading), body);
}

async function fit(formula) {
  clear(find("fit-form"));
  try {
    const found = await ask("fit", { ...wanted(), formula, conservative: state.conservative });
    state.fit = formula; // a report has it only if it can be fitted
    keep();
    report(find("fit-section"), found.section.body);
    find("fit-summary").textContent = found.summary;
    find("fit").hidden = false;
  } catch (error) {
    find("fit").hidden = true;
    if (!(error instanceof Refused)) throw error;
    refuse(find("fit-form"), error.errors);
  }
}
