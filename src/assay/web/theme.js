/** Light or dark: as the system, or as chosen with the switch, which is remembered where the browser allows it. */

import { signal } from "./view.js";

const KEY = "assay-theme";
const DARK = matchMedia("(prefers-color-scheme: dark)");

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

const first = remembered();
let chosen = first === "light" || first === "dark" ? first : null;

/** The theme in use: light or dark. */
export const themed = signal("light");

function use(name) {
  document.documentElement.dataset.theme = name;
  themed.value = name;
}

function update() {
  use(chosen ?? (DARK.matches ? "dark" : "light"));
}

/** Use the other theme, and remember it. */
export function switchTheme() {
  chosen = themed.value === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // A page from a file may have no storage: the choice holds until it is closed.
  }
  update();
}

DARK.addEventListener("change", update);
// Charts are pictures: on paper they need the light colours, too.
addEventListener("beforeprint", () => use("light"));
addEventListener("afterprint", update);
update();
