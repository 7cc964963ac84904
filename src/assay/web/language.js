/** A browser without a locale has a language that `Intl` refuses, such as "en-US@posix"; the chart library asks for it. */
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en-US" });
}
