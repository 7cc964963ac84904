/** Brings a part of the page up to date in place: what has not changed keeps its focus, scrolling and selection. */

function keyOf(node) {
  return node.dataset?.key;
}

function patchAttributes(old, made) {
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
}

function patchNode(old, made) {
  if (old.isEqualNode(made)) return;
  if (old.nodeName !== made.nodeName || keyOf(old) !== keyOf(made)) old.replaceWith(made);
  else if (old instanceof Element) {
    patchAttributes(old, made);
    patchChildren(old, made);
  } else old.data = made.data;
}

/**
 * Give *parent* the children of *made*.
 *
 * Children with the same `data-key` are the same, wherever they stand; others are the same at the same place. Their
 * listeners stay those of the first time, so a listener may depend on the key alone.
 */
export function patchChildren(parent, made) {
  const kept = new Map([...parent.children].map((each) => [keyOf(each), each]));
  const children = [...made.childNodes];
  const keys = new Set(children.map(keyOf));
  for (const each of [...parent.children]) if (keyOf(each) !== undefined && !keys.has(keyOf(each))) each.remove();
  let at = parent.firstChild;
  for (const child of children) {
    const same = keyOf(child) === undefined ? at : kept.get(keyOf(child));
    if (same === null || same === undefined) parent.insertBefore(child, at);
    else {
      if (same === at) at = at.nextSibling;
      else parent.insertBefore(same, at);
      patchNode(same, child);
    }
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
