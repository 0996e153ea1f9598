// The few things every step does with the document. Text is always text; only charts are markup, and inert.

export const find = (id) => document.getElementById(id);

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [word, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (word in element && typeof value !== "string") element[word] = value;
    else element.setAttribute(word, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function chart(place, markup) {
  if (!markup) {
    place.replaceChildren();
    return;
  }
  const drawn = new DOMParser().parseFromString(markup, "image/svg+xml").documentElement;
  if (drawn.nodeName === "svg") place.replaceChildren(document.importNode(drawn, true));
}

// Markup that the server made with the report's own code, which escapes whatever is not its own; it runs nothing.
export function report(place, markup) {
  const made = new DOMParser().parseFromString(markup, "text/html");
  place.replaceChildren(...made.body.childNodes);
}

export function rows(table, lines) {
  table.tBodies[0].replaceChildren(
    ...lines.map((cells) =>
      make("tr", {}, ...cells.map((cell, place) => {
        const given = typeof cell === "object" ? cell : { text: cell };
        return place === 0
          ? make("th", { scope: "row", class: given.class }, given.text)
          : make("td", { class: given.class }, given.text);
      })),
    ),
  );
}

export function options(select, names, { chosen = "", none = "" } = {}) {
  const list = names.map((name) => make("option", { value: name }, name));
  if (none) list.unshift(make("option", { value: "" }, none));
  select.replaceChildren(...list);
  select.value = names.includes(chosen) ? chosen : none ? "" : names[0] || "";
}

export function later(work, wait) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), wait);
  };
}

let named = 0;

function beside(input) {
  if (!input.dataset.beside) {
    const place = make("p", { class: "error", id: `error-${(named += 1)}` });
    (input.closest(".field, .slider, .bound") || input.parentElement).append(place);
    input.dataset.beside = place.id;
  }
  return find(input.dataset.beside);
}

// Every refusal beside its field; one whose field is not here goes to the form's own line.
export function refuse(form, errors, { only = null } = {}) {
  clear(form);
  const rest = [];
  for (const error of errors) {
    const input = error.field && [...form.querySelectorAll("[data-field]")].find((one) => one.dataset.field === error.field);
    if (!input || input.matches("[data-errors]")) {
      rest.push(error.text);
      continue;
    }
    if (only && !only.has(error.field)) continue;
    const place = beside(input);
    place.textContent = error.text;
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", place.id);
  }
  const line = form.querySelector("[data-errors]");
  if (line) line.textContent = rest.join(" ");
  return rest;
}

export function clear(form) {
  for (const input of form.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-describedby");
    beside(input).textContent = "";
  }
  const line = form.querySelector("[data-errors]");
  if (line) line.textContent = "";
}

export function focusFirst(form) {
  const first = form.querySelector("[aria-invalid]");
  if (first) {
    const hidden = first.closest("details:not([open])");
    if (hidden) hidden.open = true;
    first.focus();
  }
}
