// The page: asks how things stand, then shows the step that the address names.

import { ask, Refused } from "./api.js";
import { find } from "./dom.js";
import * as plan from "./plan.js";
import * as release from "./release.js";
import * as result from "./result.js";
import * as schema from "./schema.js";
import { keep, state } from "./state.js";

const STEPS = ["schema", "plan", "release", "result"];
let moved = false;

function show() {
  const wanted = location.hash.slice(1);
  const step = STEPS.includes(wanted) ? wanted : "schema";
  for (const name of STEPS) find(`step-${name}`).hidden = name !== step;
  for (const link of document.querySelectorAll("[data-step]")) {
    if (link.dataset.step === step) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  }
  document.title = `${find(`h-${step}`).textContent} · privcov`;
  if (moved) {
    find(`h-${step}`).focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  moved = true;
  ({ schema: () => {}, plan: plan.show, release: release.show, result: result.show })[step]();
}

function trouble(text) {
  find("trouble").textContent = text;
  find("trouble").hidden = !text;
}

async function begin() {
  let start;
  try {
    start = await ask("start");
  } catch (error) {
    trouble(error instanceof Refused ? error.message : "The workbench does not answer.");
    return;
  }
  find("about").textContent = `privcov ${start.version} · files below ${start.directory}/ · on this machine only`;
  state.data = state.data || start.given.data;
  state.ledger = state.ledger || start.given.ledger || (start.files.ledgers.length === 1 ? start.files.ledgers[0] : "");
  const settled = (found) => {
    plan.schema(found);
    release.mechanisms(start.mechanisms);
  };
  schema.setUp(start, settled);
  plan.setUp(start);
  release.setUp(start, () => {});
  result.setUp(start);
  if (!state.draft && start.draft) {
    state.draft = start.draft;
    state.schema = start.given.schema;
    find("schema-file").value = state.schema;
  }
  if (state.draft) {
    schema.draw();
    await schema.check();
  } else if (start.given.schema) {
    find("schema-file").value = start.given.schema;
    await schema.open("schema/open", { schema: start.given.schema });
  } else if (start.given.data) {
    find("schema-data").value = start.given.data;
    await schema.open("columns", { data: start.given.data });
  }
  keep();
  addEventListener("hashchange", show);
  find("skip").addEventListener("click", (event) => {
    event.preventDefault();
    find("main").focus();
  });
  show();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

begin();
