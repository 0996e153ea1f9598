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
  find("derive").addEventListener("click", derive);
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

// Whether a text of names and marks, a formula or an expression, has a name in it: between backticks, or in a run of
// name characters, where a dash may belong to a name or be a minus sign.
export function mentioned(text) {
  const tokens = [...text.normalize("NFC").matchAll(/`((?:[^`]|``)*)`|[^\s\x00-,/:-@\[-^`{-\x7f]+/g)];
  const quoted = new Set(tokens.filter((one) => one[1] !== undefined).map((one) => one[1].replaceAll("``", "`").trim()));
  const runs = tokens.filter((one) => one[1] === undefined).map((one) => `-${one[0]}-`);
  return (name) => quoted.has(name) || runs.some((run) => run.includes(`-${name}-`));
}

// What a column is for, where that is not to be a column of the release.
export function role(about) {
  if (about.name === state.draft.person) return "person";
  if (about.name === state.draft.weight) return "weight";
  if (about.use && about.kind !== "date") return "";
  const named = state.draft.derived.filter((one) => one.use).map((one) => mentioned(one.expression));
  return named.some((one) => one(about.name)) ? "read" : "unused";
}

const roles = () => state.draft.columns.map(role).join();

export function draw() {
  const draft = state.draft;
  form.hidden = !draft;
  find("schema-empty").hidden = Boolean(draft);
  if (!draft) return;
  drawColumns();
  find("derived").replaceChildren(...draft.derived.map(derived));
  find("derived").hidden = !draft.derived.length;
  if (draft.derived.length) find("derived-part").open = true;
  if (draft.person || draft.weight) find("table-part").open = true;
  find("missing").value = draft.missing;
  find("max-rows").value = draft.max_rows_per_person;
  find("row-norm").value = draft.row_norm_bound;
  find("intercept").checked = draft.intercept;
  find("per-person").value = draft.per_person;
  find("largest-weight").value = draft.largest_weight;
  find("weight-power").value = draft.weight_power;
  drawTable();
  find("schema-name").value = find("schema-name").value || `${(state.data || "people.csv").split("/").pop().replace(/\.\w+$/, "")}.toml`;
  performance.mark("schema drawn");
}

function drawColumns() {
  find("columns").replaceChildren(...state.draft.columns.map(column));
}

// The columns that can say whose a row is, or what it counts; and what is to be told then.
function drawTable() {
  const draft = state.draft;
  for (const [word, none] of [["person", "nobody says: it is not checked"], ["weight", "every row counts as one"]]) {
    const names = [...new Set([...draft.columns.map((one) => one.name), draft[word]])].filter(Boolean);
    options(find(word), names, { chosen: draft[word], none });
  }
  for (const field of form.querySelectorAll("[data-with]")) field.hidden = !draft[field.dataset.with];
  find("max-rows-hint").textContent = draft.person ? "Enforced: a person’s further rows are dropped. The noise grows with it." : "Declared, not enforced. The noise grows with it.";
}

const WORDS = {
  person: "has the person’s id, and is never released",
  weight: "has the weight of each row",
  read: "is read for derived columns, and not released",
};

function column(about, place) {
  const field = (word) => `columns.${place}.${word}`;
  const text = (word, label, extra = {}) =>
    make("div", { class: `bound ${word}` },
      make("label", { for: `c${place}-${word}` }, label),
      make("input", { id: `c${place}-${word}`, "data-field": field(word), value: about[word], inputmode: "decimal", spellcheck: "false", ...extra }));
  const tick = (word, label) => make("label", { class: "check" }, make("input", { type: "checkbox", "data-field": field(word), checked: about[word] }), ` ${label}`);
  const date = about.kind === "date";
  const is = role(about);
  const name = make("span", { "data-field": field("name"), class: "name" }, about.name);
  const kind = make("select", { id: `c${place}-kind`, "data-field": field("kind") },
    make("option", { value: "numeric" }, "number"), make("option", { value: "levels" }, "levels"), make("option", { value: "date" }, "date"));
  kind.value = about.kind;
  const dated = date ? { inputmode: "text", placeholder: "2024-12-31" } : {};
  const fields = about.kind !== "levels"
    ? [text("lower", "from", dated), text("upper", "to", dated)]
    : [make("div", { class: "bound levels" },
        make("label", { for: `c${place}-levels` }, "levels, one a line"),
        make("textarea", { id: `c${place}-levels`, "data-field": field("levels"), rows: String(Math.min(6, Math.max(2, about.levels.split("\n").length))), spellcheck: "false" }, about.levels),
        tick("numbers", "they are numbers"), tick("exhaustive", "every cell has one of them, which saves noise"),
        about.exhaustive ? text("otherwise", "a cell with another value counts as", { inputmode: "text", placeholder: "a level; blank: as a missing cell" }) : null)];
  const words = { inputmode: "text", spellcheck: "true" };
  const called = [about.label, about.unit && `(${about.unit})`].filter(Boolean).join(" ");
  const title = date ? null : make("details", { class: "title" }, make("summary", {}, called || "label and unit"),
    text("label", "label, for tables and figures", words), text("unit", "unit, such as years", words));
  const whole = is === "" || is === "read";
  const own = is === "person" || is === "weight";
  return make("fieldset", { class: is ? `column ${is}` : "column" },
    make("legend", { class: "visually-hidden" }, about.name),
    make("div", { class: "who" },
      date || own ? make("span", { class: "use" }, name)
        : make("label", { class: "use" }, make("input", { type: "checkbox", "data-field": field("use"), checked: about.use }), name),
      WORDS[is] && !own ? make("p", { class: "soft small hint" }, WORDS[is]) : null,
      is === "" ? title : null),
    own ? make("p", { class: "soft role" }, WORDS[is]) : make("div", { class: "bound kind" }, make("label", { for: kind.id }, "kind"), kind),
    ...(whole ? fields : date ? [make("p", { class: "soft small role" }, "A date is not released. Derive a number from it: year, month, days.")] : []));
}

function derived(about, place) {
  const input = (word, label, extra = {}) =>
    make("div", { class: `bound ${word}` },
      make("label", { for: `d${place}-${word}` }, label),
      make("input", { id: `d${place}-${word}`, "data-field": `derived.${place}.${word}`, value: about[word], spellcheck: "false", ...extra }));
  return make("fieldset", { class: about.use ? "column derived" : "column derived unused" },
    make("legend", { class: "visually-hidden" }, about.name || "a new column"),
    make("label", { class: "use" }, make("input", { type: "checkbox", "data-field": `derived.${place}.use`, checked: about.use }), make("span", { class: "visually-hidden" }, "release it")),
    input("name", "name", { placeholder: "log_income" }),
    input("expression", "is", { placeholder: "log(income + 1)" }),
    make("p", { class: "soft small bounds", id: `d${place}-bounds` }));
}

function derive() {
  const place = state.draft.derived.push({ name: "", use: true, expression: "", rules: {}, guesses: {}, mean: "", std: "", shares: "" }) - 1;
  keep();
  draw();
  find(`d${place}-name`).focus();
}

function edited(event) {
  const field = event.target.dataset.field || "";
  const value = event.target.type === "checkbox" ? event.target.checked : event.target.value;
  const [, list, place, word] = /^(columns|derived)\.(\d+)\.(\w+)$/.exec(field) || [];
  if (field === "name") return;
  const before = roles();
  if (place !== undefined) state.draft[list][Number(place)][word] = value;
  else state.draft[field] = value;
  touched.add(field);
  saved = "";
  keep();
  if (["kind", "use", "exhaustive"].includes(word)) {
    draw();
    document.querySelector(`[data-field="${field}"]`).focus();
  } else if (roles() !== before) drawColumns(); // an expression names another column now, or one became the weight
  if (field === "person" || field === "weight") drawTable();
  checkSoon();
}

const checkSoon = later(() => check(), 250);

async function check() {
  const draft = state.draft;
  try {
    const found = await ask("schema/check", { draft });
    clear(form);
    find("schema-status").textContent = saved + found.words;
    find("schema-saving").textContent = found.saving;
    bounds(found.derived);
    changed(found);
    return found;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    refuse(form, error.errors, { only: everything ? null : touched });
    const left = error.errors.length;
    find("schema-saving").textContent = "";
    bounds({});
    find("schema-status").textContent = `${left} ${left === 1 ? "entry is" : "entries are"} still missing or wrong.`;
    changed(null);
    return null;
  }
}

// Where derived columns lie, beside their expressions; nothing while some field is wrong.
function bounds(found) {
  for (const [place, line] of find("derived").querySelectorAll(".bounds").entries()) {
    const one = state.draft.derived[place];
    line.textContent = (one?.use && found[one.name]?.bounds) || "";
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
