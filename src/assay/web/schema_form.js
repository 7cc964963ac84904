/**
 * A form made from a JSON Schema: text, numbers, switches, choices, lists and nested objects.
 *
 * What a form cannot express (combinations, references, free members) is a field for JSON. The form only helps with
 * typing: the guard judges what is sent.
 */

import { element, fill } from "./dom.js";

const DEEPEST = 6;
const MOST_FIELDS = 100;

let fields = 0;

/** An input that cannot be sent; the message is for people. */
export class FormError extends Error {}

function typeOf(schema) {
  if (schema === null || typeof schema !== "object") return "json";
  if (Array.isArray(schema.enum)) return "enum";
  if (["$ref", "oneOf", "anyOf", "allOf", "not", "if"].some((key) => key in schema)) return "json";
  const type = Array.isArray(schema.type) ? schema.type.filter((each) => each !== "null") : [schema.type];
  if (type.length !== 1) return "json";
  if (type[0] === "object" && typeof schema.properties !== "object") return "json";
  if (type[0] === "array" && (typeof schema.items !== "object" || schema.items === null)) return "json";
  return type[0] in CONTROLS ? type[0] : "json";
}

/** A control: its node, what it holds (undefined for nothing), and the field that a label names. */
function plain(field, value) {
  return { node: field, field, value };
}

function text(schema) {
  const field = element(schema.maxLength > 200 || schema.format === "multiline" ? "textarea" : "input", {
    placeholder: schema.examples?.[0] ?? null,
  });
  field.value = typeof schema.default === "string" ? schema.default : "";
  return plain(field, (isRequired) => (field.value === "" && !isRequired ? undefined : field.value));
}

function numeric(schema) {
  const field = element("input", {
    type: "text",
    inputmode: "decimal",
    placeholder: [schema.minimum, schema.maximum].some((each) => each !== undefined)
      ? `${schema.minimum ?? "…"} to ${schema.maximum ?? "…"}`
      : null,
  });
  field.value = schema.default === undefined ? "" : JSON.stringify(schema.default);
  const value = () => {
    const typed = field.value.trim();
    if (typed === "") return undefined;
    // What is not a number is sent as it was typed: a call with a mistake is something to test, too.
    return /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/.test(typed) ? Number(typed) : typed;
  };
  return plain(field, value);
}

function options(schema, values) {
  const field = element(
    "select",
    null,
    element("option", { value: "" }, "–"),
    ...values.map((each, at) =>
      element("option", { value: String(at) }, typeof each === "string" ? each : JSON.stringify(each)),
    ),
  );
  const chosen = values.findIndex((each) => JSON.stringify(each) === JSON.stringify(schema.default));
  field.value = chosen >= 0 ? String(chosen) : "";
  return plain(field, () => (field.value === "" ? undefined : values[Number(field.value)]));
}

function json(schema) {
  const field = element("textarea", { rows: "3", class: "json-input", spellcheck: "false", placeholder: "JSON" });
  field.value = schema?.default === undefined ? "" : JSON.stringify(schema.default, null, 2);
  const value = () => {
    if (field.value.trim() === "") return undefined;
    try {
      return JSON.parse(field.value);
    } catch (error) {
      field.focus();
      throw new FormError(`Not JSON: ${error.message}`);
    }
  };
  return plain(field, value);
}

function object(schema, depth) {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const names = Object.keys(schema.properties).slice(0, MOST_FIELDS);
  const members = names.map((name) => [name, control(schema.properties[name], depth + 1), required.has(name)]);
  const value = (isRequired) => {
    const made = members
      .map(([name, each, isNeeded]) => [name, each.value(isNeeded)])
      .filter(([, each]) => each !== undefined);
    // Entries, not assignment: a property may be called __proto__.
    return made.length > 0 || isRequired ? Object.fromEntries(made) : undefined;
  };
  const node = element(
    "div",
    { class: "members" },
    ...members.map(([name, each, isNeeded]) => labelled(name, schema.properties[name], each, isNeeded)),
  );
  return { node, field: null, value };
}

function array(schema, depth) {
  const items = [];
  const list = element("div", { class: "items" });
  const show = () =>
    fill(
      list,
      ...items.map((each, at) =>
        element(
          "div",
          { class: "item" },
          each.node,
          element(
            "button",
            {
              type: "button",
              class: "button",
              "aria-label": `Remove item ${at + 1}`,
              on: { click: () => remove(each) },
            },
            "×",
          ),
        ),
      ),
    );
  const remove = (item) => {
    items.splice(items.indexOf(item), 1);
    show();
  };
  const add = () => {
    const made = control(schema.items, depth + 1);
    made.field?.setAttribute("aria-label", `Item ${items.length + 1}`);
    items.push(made);
    show();
    made.field?.focus();
  };
  const value = (isRequired) => {
    const made = items.map((each) => each.value(true)).filter((each) => each !== undefined);
    return made.length > 0 || isRequired ? made : undefined;
  };
  const node = element(
    "div",
    null,
    list,
    element("button", { type: "button", class: "button", on: { click: add } }, "Add an item"),
  );
  return { node, field: null, value };
}

const CONTROLS = {
  string: text,
  number: numeric,
  integer: numeric,
  boolean: (schema) => options(schema, [true, false]),
  enum: (schema) => options(schema, schema.enum),
  object,
  array,
  json,
};

function control(schema, depth) {
  const type = depth > DEEPEST ? "json" : typeOf(schema);
  return CONTROLS[type](schema ?? {}, depth);
}

function labelled(name, schema, made, isRequired) {
  const type = typeOf(schema);
  const kind = type === "json" ? (schema?.type ?? "any") : type === "enum" ? "one of" : type;
  const mark =
    isRequired &&
    element("span", { class: "required", title: "required" }, " *", element("span", { class: "unseen" }, "required"));
  const title = [
    element("span", { class: "field-name" }, name),
    mark,
    element("span", { class: "field-type" }, ` ${Array.isArray(kind) ? kind.join(" or ") : kind}`),
  ];
  const about = typeof schema?.description === "string" && element("span", { class: "quiet-text" }, schema.description);
  if (made.field === null) return element("fieldset", null, element("legend", null, ...title), about, made.node);
  fields += 1;
  made.field.id = `field-${fields}`;
  return element("div", { class: "form-row" }, element("label", { for: made.field.id }, ...title), about, made.node);
}

/** Return a form for *schema*: its node, and a function that returns its value or throws `FormError`. */
export function schemaForm(schema) {
  const isObject =
    schema !== null &&
    typeof schema === "object" &&
    typeof schema.properties === "object" &&
    schema.properties !== null;
  if (!isObject) return null;
  const made = object(schema, 0);
  return { node: made.node, value: () => made.value(true) };
}
