/** The contracts: what each server lists, the quarantined entries first, against the lock and the list before. */

import { read } from "./api.js";
import { Fix } from "./finding.js";
import { JsonView } from "./json_view.js";
import { Notice, NothingYet, prose, ScreenHead, Table, Tag } from "./parts.js";
import { attempted, go, listed, routeTo, serverName, serverOf, stream } from "./store.js";
import { counted, dateAndTime, number, sentence } from "./text.js";
import { html, signal, useEffect } from "./view.js";

const TITLES = { tools: "Tools", prompts: "Prompts", resources: "Resources", resourceTemplates: "Resource templates" };
const SINCE = { added: ["new in this list", "warning"], changed: ["changed in this list", "warning"] };
const LOCKED = { added: ["not in the lock", "warning"], changed: ["differs from the lock", "error"] };

/** The answer of `api/contracts`; null until it is there. */
const contracts = signal(null);
const opened = signal(new Set());
const chosen = signal(null);
/** The server that is shown where the address names none. */

async function load() {
  contracts.value = (await read("contracts")).contracts;
}

function toggle(key) {
  const others = new Set(opened.value);
  if (!others.delete(key)) others.add(key);
  opened.value = others;
}

/** Return the rank of the worst entry of a server. */
function trouble({ lists }) {
  return Math.min(4, ...lists.flatMap((each) => each.entries.map(rankOf)));
}

/** Return the rank of an entry: those that clients lose come first, then those that are not judged or have changed. */
function rankOf(entry) {
  if (entry.quarantined || entry.wouldQuarantine) return 0;
  if (!entry.judged || entry.why.length > 0) return 1;
  return entry.lock === "changed" || entry.lock === "added" ? 2 : 3;
}

function States({ entry }) {
  return html`<span class="tags">
    ${entry.quarantined && html`<${Tag} tone="blocked">quarantined<//>`}
    ${entry.wouldQuarantine && html`<${Tag} tone="would-block" title="forwarded in audit mode">would be quarantined<//>`}
    ${!entry.judged && rankOf(entry) > 0 && html`<${Tag} tone="warning">not judged<//>`}
    ${entry.judged && rankOf(entry) > 0 && html`<${Tag} tone="ok">judged<//>`}
    ${LOCKED[entry.lock] && html`<${Tag} tone=${LOCKED[entry.lock][1]}>${LOCKED[entry.lock][0]}<//>`}
    ${SINCE[entry.since] && html`<${Tag} tone=${SINCE[entry.since][1]}>${SINCE[entry.since][0]}<//>`}
  </span>`;
}

/** The names of the parameters: of a tool, those of its schema; required ones are marked. */
function parametersOf({ definition }) {
  const { inputSchema: schema, arguments: listing } = definition;
  if (Array.isArray(listing)) return listing.map((each) => [String(each?.name ?? "?"), each?.required === true]);
  const properties = schema !== null && typeof schema === "object" ? schema.properties : null;
  if (properties === null || typeof properties !== "object") return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.keys(properties).map((name) => [name, required.includes(name)]);
}

const MOST_PARAMETERS = 8;

function Parameters({ entry }) {
  const all = parametersOf(entry);
  if (all.length === 0) return html`<span class="zero">none</span>`;
  const more = all.length - MOST_PARAMETERS;
  return html`<span class="parameters">${all.slice(0, MOST_PARAMETERS).map(([name, isRequired], at) =>
    html`${at > 0 && ", "}<code title=${isRequired ? "required" : "optional"}>${name}${isRequired ? "" : "?"}</code>`)}${more > 0 && ` and ${number(more)} more`}</span>`;
}

function Reason({ entry }) {
  const changes = entry.changes.map((each) => [each.at, each.what].filter(Boolean).join(": "));
  const texts = [...entry.why, ...changes];
  if (texts.length === 0) return html`<span class="zero">–</span>`;
  return html`<span class="clamp">${prose(texts[0])}${texts.length > 1 && ` (+${number(texts.length - 1)})`}</span>`;
}

function Details({ entry }) {
  const about = entry.definition.description ?? entry.definition.uri ?? entry.definition.uriTemplate;
  return html`<div class="entry">
    ${typeof about === "string" && html`<p class="description">${about}</p>`}
    ${entry.why.length > 0 && html`<ul class="changes">${entry.why.map((each, at) => html`<li>${prose(each)}<${Fix} hint=${entry.faults[at]?.hint} /></li>`)}</ul>`}
    ${entry.changes.length > 0 && html`<ul class="changes">${entry.changes.map((each) => html`<li>
      ${each.weight && html`<${Tag} tone=${each.weight === "breaking" ? "error" : "note"}>${each.weight}<//>${" "}`}
      ${each.at && html`<code>${each.at}</code>${" "}`}${each.what}</li>`)}</ul>`}
    <p class="quiet-text">${[entry.readOnly && "read-only", entry.dialect && `dialect ${entry.dialect}`].filter(Boolean).join(", ")}</p>
    <${JsonView} text=${JSON.stringify(entry.definition)} faults=${entry.faults} />
  </div>`;
}

const COLUMNS = [["Name", { class: "wide" }], ["State"], ["Reason", { class: "wraps" }], ["Parameters", { class: "wraps" }], ["Tokens", { number: true }]];

function Listing({ server, listing, isOnly }) {
  const hasParameters = listing.list === "tools" || listing.list === "prompts";
  const isSaid = { Parameters: hasParameters, Reason: listing.entries.some((each) => each.why.length + each.changes.length > 0) };
  const kept = COLUMNS.map((_, at) => at).filter((at) => isSaid[COLUMNS[at][0]] ?? true);
  const sorted = listing.entries.toSorted((one, other) => rankOf(one) - rankOf(other));
  const rows = sorted.map((entry) => {
    const key = JSON.stringify([server, listing.list, entry.name]);
    const isOpen = opened.value.has(key);
    const title = entry.title && entry.title !== entry.name && html`<span class="quiet-text block">${entry.title}</span>`;
    const cells = [
      html`<button type="button" class="link name" data-row aria-expanded=${String(isOpen)} onClick=${() => toggle(key)}>${entry.name}</button>${title}`,
      html`<${States} entry=${entry} />`,
      html`<${Reason} entry=${entry} />`,
      html`<${Parameters} entry=${entry} />`,
      number(entry.tokens),
    ];
    return { key, class: entry.quarantined ? "entry-quarantined" : entry.wouldQuarantine ? "entry-would" : null, cells: kept.map((at) => cells[at]), below: isOpen && html`<${Details} entry=${entry} />` };
  });
  const about = [
    listing.time > 0 && `listed ${dateAndTime(listing.time)}`,
    !listing.complete && "not all pages are known",
    !isOnly && `about ${counted(listing.tokens, "token")}`,
  ].filter(Boolean).join(", ");
  const isThere = listing.seq !== null && stream.value.rows.has(listing.seq);
  return html`<section class="listing" aria-label=${TITLES[listing.list] ?? listing.list}>
    <div class="card-head"><h2>${TITLES[listing.list] ?? listing.list} <span class="quiet-text">${number(listing.entries.length)}</span></h2>
      <span class="quiet-text">${about}${isThere && html` · <a href=${routeTo("stream", { all: 1, message: listing.seq })}>show the message</a>`}</span></div>
    ${listing.removed.length > 0 && html`<${Notice} tone="warning">No longer listed: ${listing.removed.map((each) => html`<code>${each}</code> `)}<//>`}
    ${listing.entries.length > 0 && html`<${Table} caption=${TITLES[listing.list] ?? listing.list} columns=${kept.map((at) => COLUMNS[at])} rows=${rows} />`}
  </section>`;
}

/** Say why a server has no lists here. */
function missingLists(contract) {
  if (serverOf(contract.server)?.payloads === true && contract.count === null)
    return "No list yet: it appears here as soon as a client asks the server for one.";
  const count = contract.count === null ? "" : `${counted(contract.count, "tool")}. `;
  return count + sentence(contract.why);
}

function Contract({ contract }) {
  const lock = { locked: "Its lists are compared with the lock.", none: "" }[contract.lock] ?? contract.lock;
  const tokens = contract.lists.reduce((sum, each) => sum + each.tokens, 0);
  const isBare = (each) => each.entries.length === 0 && each.removed.length === 0;
  const [full, bare] = [contract.lists.filter((each) => !isBare(each)), contract.lists.filter(isBare)];
  const cost = tokens > 0 ? `Its lists take about ${counted(tokens, "token")} in every conversation.` : "";
  return html`
    <p class="lead"><strong>${serverName(contract.server)}.</strong> ${prose(sentence(lock))} ${cost}</p>
    ${contract.why && html`<${Notice} tone="note">${prose(missingLists(contract))}<//>`}
    ${full.map((each) => html`<${Listing} key=${each.list} server=${contract.server} listing=${each} isOnly=${full.length === 1} />`)}
    ${bare.length > 0 && html`<p class="quiet-text">Listed without entries: ${bare.map((each) => (TITLES[each.list] ?? each.list).toLowerCase()).join(", ")}.</p>`}`;
}

function Picker({ shown }) {
  if (contracts.value.length < 2) return null;
  return html`<select class="button" aria-label="Server" value=${shown.server} onChange=${(event) => go(routeTo("contracts", { server: event.target.value }))}>
    ${contracts.value.map(({ server }) => html`<option key=${server} value=${server}>${serverName(server)}</option>`)}
  </select>`;
}

/** The screen. */
export function ContractsScreen({ options }) {
  useEffect(() => attempted(load), [listed.value.count, stream.value.loads]);
  const all = contracts.value ?? [];
  const wanted = options.server ? Number(options.server) : chosen.value;
  const shown = all.find((each) => each.server === wanted) ?? all.toSorted((one, other) => trouble(one) - trouble(other))[0];
  // A server that lists later must not take the place of the one that is read.
  useEffect(() => void (shown && (chosen.value = shown.server)), [shown?.server]);
  return html`<section>
    <${ScreenHead} title="Contracts" about="What the server offers now, compared with the lock and its previous list.">
      ${shown && html`<${Picker} shown=${shown} />`}
    <//>
    ${contracts.value === null
      ? html`<p class="quiet-text" role="status">Reading the lists…</p>`
      : shown === undefined
        ? html`<${NothingYet}>No server has listed anything yet. Lists appear here as soon as a client asks for them.<//>`
        : html`<${Contract} contract=${shown} />`}
  </section>`;
}
