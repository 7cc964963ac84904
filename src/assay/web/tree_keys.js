/** A tree that can be folded, with the roles and keys that people who do not see it know from other trees. */

export const ITEM = { role: "treeitem", tabindex: "-1" };
/** The attributes of every item. */

const builders = new WeakMap();

/** Make *item* open and close. What is inside is built when it first opens. */
export function expandable(item, build, isOpen) {
  builders.set(item, build);
  set(item, isOpen);
  return item;
}

function set(item, isOpen) {
  const build = builders.get(item);
  if (isOpen && build !== undefined && item.childElementCount === 1) item.append(...build());
  item.setAttribute("aria-expanded", String(isOpen));
}

function isOpen(item) {
  return item.getAttribute("aria-expanded") === "true";
}

function itemOf(node) {
  return node?.closest('[role="treeitem"]') ?? null;
}

/** The items that are not inside a closed one. */
function visible(tree) {
  return [...tree.querySelectorAll('[role="treeitem"]')].filter(
    (each) => each.parentElement.closest('[aria-expanded="false"]') === null,
  );
}

function goTo(tree, item) {
  if (!item) return;
  for (const each of tree.querySelectorAll('[role="treeitem"][tabindex="0"]')) each.setAttribute("tabindex", "-1");
  item.setAttribute("tabindex", "0");
  item.focus();
}

const MOVES = {
  ArrowDown: (tree, at) => step(tree, at, 1),
  ArrowUp: (tree, at) => step(tree, at, -1),
  Home: (tree) => goTo(tree, visible(tree)[0]),
  End: (tree) => goTo(tree, visible(tree).at(-1)),
  ArrowRight: (tree, at) => {
    if (!builders.has(at)) return;
    if (isOpen(at)) step(tree, at, 1);
    else set(at, true);
  },
  ArrowLeft: (tree, at) => {
    if (builders.has(at) && isOpen(at)) set(at, false);
    else goTo(tree, itemOf(at.parentElement));
  },
  Enter: (_, at) => builders.has(at) && set(at, !isOpen(at)),
  " ": (_, at) => builders.has(at) && set(at, !isOpen(at)),
};

function step(tree, at, by) {
  const shown = visible(tree);
  goTo(tree, shown[shown.indexOf(at) + by]);
}

/** Make *tree*, an element with items, a tree that the keyboard and the mouse can use. */
export function asTree(tree) {
  tree.setAttribute("role", "tree");
  tree.querySelector('[role="treeitem"]')?.setAttribute("tabindex", "0");
  tree.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    const isChord = event.ctrlKey || event.altKey || event.metaKey;
    // A button inside an item keeps its keys.
    if (move === undefined || isChord || event.target !== itemOf(event.target)) return;
    event.preventDefault();
    event.stopPropagation();
    move(tree, event.target);
  });
  tree.addEventListener("click", (event) => {
    const line = event.target.closest(".json-summary");
    if (line === null || String(window.getSelection())) return;
    const item = itemOf(line);
    set(item, !isOpen(item));
    goTo(tree, item);
  });
  return tree;
}
