/** The address of a screen: `#/stream?filter=tool:search`, `#/message/12`. */

/** Return the screen that a fragment names: `name`, `argument` and `options`. */
export function parseRoute(fragment) {
  const [path, query] = fragment.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [name, argument] = path.split("/");
  return {
    name: name || "servers",
    argument: argument ? safelyDecoded(argument) : null,
    options: Object.fromEntries(new URLSearchParams(query ?? "")),
  };
}

function safelyDecoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Return the fragment of a screen. Options without a value are left out. */
export function routeTo(name, argument = null, options = {}) {
  const kept = Object.entries(options).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = kept.length === 0 ? "" : `?${new URLSearchParams(kept)}`;
  return `#/${name}${argument === null ? "" : `/${encodeURIComponent(argument)}`}${query}`;
}

/** Go to a screen; without *remember* the browser's history does not get a new entry. */
export function go(fragment, remember = true) {
  if (remember) location.hash = fragment;
  else history.replaceState(null, "", fragment);
}
