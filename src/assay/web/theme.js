/** Light or dark: as the system, or as chosen with the switch, which is remembered where the browser allows it. */

const KEY = "assay-theme";

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function remember(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A page from a file may have no storage: the choice holds until it is closed.
  }
}

/** Return the theme in use: light or dark. */
export function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function label(button) {
  const other = theme() === "dark" ? "light" : "dark";
  button.textContent = other === "dark" ? "Dark" : "Light";
  button.setAttribute("aria-label", `Use ${other} colours`);
}

/** Make *button* switch between light and dark; *changed* is called after every change. */
export function switchTheme(button, changed) {
  const before = remembered();
  if (before === "light" || before === "dark") document.documentElement.dataset.theme = before;
  const update = () => {
    label(button);
    changed();
  };
  button.addEventListener("click", () => {
    const other = theme() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = other;
    remember(other);
    update();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
  label(button);
}
