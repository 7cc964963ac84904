/**
 * Reads JSON text into nodes that know where they are in the text.
 *
 * Unlike `JSON.parse` it keeps the spelling of numbers, and all members with the same key.
 */

const SPACE = /[ \t\r\n]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
const SCALAR = /-?[0-9][-+.0-9eE]*|true|false|null/y;

const DEEPEST = 400;

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return null;
    this.at = pattern.lastIndex;
    return found;
  }

  space() {
    this.match(SPACE);
  }

  take(character) {
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  fail() {
    throw new SyntaxError(`unexpected text at ${this.at}`);
  }

  string() {
    const start = this.at;
    const found = this.match(STRING);
    if (found === null) this.fail();
    const value = JSON.parse(found[0]);
    return { type: "string", value, start, end: this.at };
  }

  value(depth) {
    this.space();
    const start = this.at;
    const first = this.text[start];
    if (depth > DEEPEST) this.fail();
    if (first === "{") return this.container("object", "}", depth);
    if (first === "[") return this.container("array", "]", depth);
    if (first === '"') return this.string();
    const found = this.match(SCALAR);
    if (found === null) this.fail();
    const type = /^[-0-9]/.test(found[0]) ? "number" : "literal";
    return { type, value: found[0], start, end: this.at };
  }

  container(type, closing, depth) {
    const node = { type, items: [], size: 0, start: this.at, end: 0 };
    this.at += 1;
    this.space();
    while (!this.take(closing)) {
      this.element(node, depth);
      this.space();
      if (this.take(",")) this.space();
      else if (this.text[this.at] !== closing) this.fail();
    }
    node.end = this.at;
    return node;
  }

  element(node, depth) {
    const item = { index: node.size };
    if (node.type === "object") {
      item.key = this.string();
      this.space();
      if (!this.take(":")) this.fail();
    }
    item.node = this.value(depth + 1);
    node.items.push(item);
    node.size += 1;
  }
}

/** Return the node of the JSON value in *text*; null if the text is not JSON. */
export function parse(text) {
  const reader = new Reader(text);
  try {
    const node = reader.value(0);
    reader.space();
    return reader.at === text.length ? node : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Return the steps of a JSON Pointer. */
function steps(pointer) {
  return pointer
    .split("/")
    .slice(1)
    .map((each) => each.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function child(node, step, isLast) {
  const same = (each) =>
    node.type === "object" ? each.key.value === step : String(each.index) === step;
  return isLast ? node.items?.findLast(same) : node.items?.find(same);
}

/**
 * Return the node at a JSON Pointer, with all nodes on the way to it.
 *
 * If it is missing, the last one on the way, and `isThere` is false. With *last*, the last of several equal keys.
 */
export function locate(root, pointer, last = false) {
  const path = [root];
  const all = steps(pointer);
  for (const [number, step] of all.entries()) {
    const found = child(path.at(-1), step, last && number === all.length - 1);
    if (found === undefined) return { path, node: path.at(-1), isThere: false };
    path.push(found.node);
  }
  return { path, node: path.at(-1), isThere: true };
}
