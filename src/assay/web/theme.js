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

function preferred() {
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Return the theme in use: light or dark. */
export function theme() {
  return document.documentElement.dataset.theme;
}

function use(name) {
  document.documentElement.dataset.theme = name;
}

function label(button) {
  const other = theme() === "dark" ? "light" : "dark";
  button.textContent = other === "dark" ? "Dark" : "Light";
  button.setAttribute("aria-label", `Use ${other} colours`);
}

/** Choose the theme, and make *button* switch it; *changed* is called after every change. */
export function switchTheme(button, changed) {
  let chosen = remembered();
  const update = () => {
    use(chosen === "light" || chosen === "dark" ? chosen : preferred());
    label(button);
    changed();
  };
  button.addEventListener("click", () => {
    chosen = theme() === "dark" ? "light" : "dark";
    remember(chosen);
    update();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
  // Charts are pictures: on paper they need the light colours, too.
  addEventListener("beforeprint", () => {
    use("light");
    changed();
  });
  addEventListener("afterprint", update);
  update();
}
