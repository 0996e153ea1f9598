// Step 4: a release in words, charts and models; and its files.

import { ask, download, Refused } from "./api.js";
import { clear, find, make, options, refuse, report } from "./dom.js";
import { keep, state } from "./state.js";

const step = find("step-result");
let files = null;

export function setUp(start) {
  files = start.files;
  find("release-file").addEventListener("change", () => {
    state.release = find("release-file").value;
    state.fit = "";
    keep();
    show();
  });
  find("fit-form").addEventListener("submit", (event) => {
    event.preventDefault();
    state.fit = find("fit-formula").value;
    keep();
    fit();
  });
  for (const button of step.querySelectorAll("[data-download]")) {
    button.addEventListener("click", () =>
      download({ release: state.release, what: button.dataset.download, formula: state.fit }).catch(refused));
  }
}

function refused(error) {
  if (!(error instanceof Refused)) throw error;
  refuse(step, error.errors);
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
  try {
    const found = await ask("result", { release: state.release });
    find("sections").replaceChildren(...found.sections.map((one) => {
      const body = make("div");
      report(body, one.body);
      return make("section", { class: `card ${one.name}` }, make("h2", {}, one.heading), body);
    }));
    find("fit-formula").value = state.fit;
    find("result").hidden = false;
    if (state.fit) fit();
  } catch (error) {
    refused(error);
  }
}

async function fit() {
  clear(find("fit-form"));
  try {
    const found = await ask("fit", { release: state.release, formula: state.fit });
    report(find("fit-section"), found.section.body);
    find("fit-summary").textContent = found.summary;
    find("fit").hidden = false;
  } catch (error) {
    find("fit").hidden = true;
    if (!(error instanceof Refused)) throw error;
    refuse(find("fit-form"), error.errors);
  }
}
