// Step 1: a schema file, or a draft from column names.

import { ask, Refused } from "./api.js";
import { clear, find, focusFirst, later, make, options, refuse } from "./dom.js";
import { keep, state } from "./state.js";

const form = find("schema-form");
const touched = new Set();
let everything = false;
let saved = ""; // what was written last, until something is edited: an answer that comes late must not wipe it out
let changed = () => {};

export function setUp(start, tell) {
  changed = tell;
  const { data, schemas } = start.files;
  options(find("schema-file"), schemas, { chosen: state.schema, none: schemas.length ? "choose …" : "none here" });
  options(find("schema-data"), data, { chosen: state.schema ? "" : state.data, none: data.length ? "choose …" : "none here" });
  find("schema-file").addEventListener("change", (event) => open("schema/open", { schema: event.target.value }));
  find("schema-data").addEventListener("change", (event) => open("columns", { data: event.target.value }));
  form.addEventListener("input", edited);
  form.addEventListener("submit", go);
  find("schema-save").addEventListener("click", save);
}

export async function open(name, question) {
  const pick = document.querySelector("#step-schema .pick");
  if (!Object.values(question)[0]) return;
  clear(pick);
  try {
    state.draft = (await ask(name, question)).draft;
  } catch (error) {
    if (error instanceof Refused) for (const one of error.errors) refuse(pick, [one]);
    return;
  }
  state.schema = question.schema || "";
  if (question.data) state.data = question.data;
  if (question.schema) find("schema-data").value = "";
  else find("schema-file").value = "";
  state.formula = "";
  touched.clear();
  everything = false;
  keep();
  draw();
  check();
}

export function draw() {
  const draft = state.draft;
  form.hidden = !draft;
  find("schema-empty").hidden = Boolean(draft);
  if (!draft) return;
  find("columns").replaceChildren(...draft.columns.map(column));
  find("missing").value = draft.missing;
  find("max-rows").value = draft.max_rows_per_person;
  find("row-norm").value = draft.row_norm_bound;
  find("intercept").checked = draft.intercept;
  find("schema-name").value = find("schema-name").value || `${(state.data || "people.csv").split("/").pop().replace(/\.\w+$/, "")}.toml`;
  performance.mark("schema drawn");
}

function column(about, place) {
  const field = (word) => `columns.${place}.${word}`;
  const text = (word, label, extra = {}) =>
    make("div", { class: `bound ${word}` },
      make("label", { for: `c${place}-${word}` }, label),
      make("input", { id: `c${place}-${word}`, "data-field": field(word), value: about[word], inputmode: "decimal", spellcheck: "false", ...extra }));
  const numeric = about.kind === "numeric";
  const kind = make("select", { id: `c${place}-kind`, "data-field": field("kind") },
    make("option", { value: "numeric" }, "number"), make("option", { value: "levels" }, "levels"));
  kind.value = about.kind;
  const fields = numeric
    ? [text("lower", "from"), text("upper", "to")]
    : [make("div", { class: "bound levels" },
        make("label", { for: `c${place}-levels` }, "levels, one a line"),
        make("textarea", { id: `c${place}-levels`, "data-field": field("levels"), rows: String(Math.min(6, Math.max(2, about.levels.split("\n").length))), spellcheck: "false" }, about.levels),
        make("label", { class: "check" }, make("input", { type: "checkbox", "data-field": field("numbers"), checked: about.numbers }), " they are numbers"))];
  return make("fieldset", { class: about.use ? "column" : "column unused" },
    make("legend", { class: "visually-hidden" }, about.name),
    make("label", { class: "use" }, make("input", { type: "checkbox", "data-field": field("use"), checked: about.use }), make("span", { "data-field": field("name"), class: "name" }, about.name)),
    make("div", { class: "bound kind" }, make("label", { for: kind.id }, "kind"), kind),
    ...(about.use ? fields : []));
}

function edited(event) {
  const field = event.target.dataset.field || "";
  const value = event.target.type === "checkbox" ? event.target.checked : event.target.value;
  const [, place, word] = /^columns\.(\d+)\.(\w+)$/.exec(field) || [];
  if (field === "name") return;
  if (place !== undefined) state.draft.columns[Number(place)][word] = value;
  else state.draft[field] = value;
  touched.add(field);
  saved = "";
  keep();
  if (word === "kind" || word === "use") {
    draw();
    document.querySelector(`[data-field="${field}"]`).focus();
  }
  checkSoon();
}

const checkSoon = later(() => check(), 250);

async function check() {
  const draft = state.draft;
  try {
    const found = await ask("schema/check", { draft });
    clear(form);
    find("schema-status").textContent = saved + found.words;
    changed(found);
    return found;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    refuse(form, error.errors, { only: everything ? null : touched });
    const left = error.errors.length;
    find("schema-status").textContent = `${left} ${left === 1 ? "entry is" : "entries are"} still missing or wrong.`;
    changed(null);
    return null;
  }
}

async function go(event) {
  event.preventDefault();
  everything = true;
  if (await check()) location.hash = "plan";
  else focusFirst(form);
}

async function save() {
  try {
    const written = await ask("schema/save", { draft: state.draft, name: find("schema-name").value });
    saved = `Saved as ${written.schema}. `;
    await check();
  } catch (error) {
    everything = true;
    if (error instanceof Refused) refuse(form, error.errors);
    focusFirst(form);
  }
}

export { check };
