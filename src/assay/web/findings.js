/** The findings: what is wrong, what to do about it, and how often it happened; one card for each server. */

import { REPORT } from "./api.js";
import { filterOf } from "./filter.js";
import { askForException, Compare, Fix, RuleFacts, toolOf } from "./finding.js";
import { Button, Empty, NothingYet, prose, saveExport, ScreenHead, Spark, Tag } from "./parts.js";
import { attempted, clock, groups, readFindings, routeTo, rules, serverName, servers, state, stream, streamOf } from "./store.js";
import { ago, counted, dateAndTime, number, timeOfDay } from "./text.js";
import { html, useEffect, useState, useSteady } from "./view.js";

const LEAST_BARS = 12;
/** Bars of a trend: a short one stands at its end, as what came last. */

/** Return what a group is about: the tool that is called or listed, another entry of a list, or the method. */
function subjectOf(group) {
  return group.tool || group.entry.replace(/^tool /, "") || group.method || "a message";
}

const OUTCOMES = [
  ["blocked", "blocked", "blocked", "not delivered"],
  ["wouldBlock", "would block", "would-block", "forwarded in audit mode; enforce mode would block it"],
  ["quarantined", "quarantined", "blocked", "removed from its list"],
  ["wouldQuarantine", "would be quarantined", "would-block", "forwarded in audit mode; enforce mode would remove it from its list"],
];

function Outcome({ group }) {
  const there = OUTCOMES.filter(([name]) => group[name] > 0);
  if (group.known) return html`<${Tag} tone="note">in the baseline<//>`;
  if (there.length === 0) return html`<${Tag} tone="reported">reported<//>`;
  return there.map(([name, words, tone, title]) =>
    html`<${Tag} key=${name} tone=${tone} title=${title}>${number(group[name])} ${words}<//>`);
}

function Trend({ group }) {
  const { counts, start, seconds } = group.trend;
  const end = start + counts.length * seconds;
  const padding = new Array(Math.max(0, LEAST_BARS - counts.length)).fill(0);
  const begin = start - padding.length * seconds;
  const isFine = end - begin < 2;
  return html`<figure class="trend">
    <${Spark} counts=${[...padding, ...counts]} meaning="${counted(group.count, "finding")}, the last ${ago(group.last)}" />
    <figcaption><span>${timeOfDay(begin, isFine)}</span><span>${timeOfDay(end, isFine)}</span></figcaption>
  </figure>`;
}

function Samples({ group }) {
  const seqs = group.samples.filter((each) => stream.value.rows.has(each));
  if (seqs.length === 0) return null;
  return html`<p class="samples">Messages:${seqs.map((seq) => html`${" "}<a key=${seq}
    href=${routeTo("stream", { filter: filterOf({ rule: group.rule, server: serverName(group.server) }), all: 1, message: seq })}>#${number(seq)}</a>`)}</p>`;
}

function Group({ group }) {
  const { rule, tool, server } = group;
  const about = rules.value[rule] ?? { id: rule, asks: "This version of assay does not know the rule." };
  const place = group.at ? html`<code>${group.at}</code>` : "the message as a whole";
  return html`<article class="finding" data-id=${group.id}>
    <div class="finding-head">
      <h3>${prose(group.says)}</h3>
      <span class="tags"><${Outcome} group=${group} /></span>
    </div>
    <p class="quiet-text">${group.entry || group.tool ? html`<code>${subjectOf(group)}</code>, ` : ""}${group.method} from the ${group.party}: ${place}</p>
    <${Fix} hint=${group.hint} />
    <div class="finding-foot">
      <p class="quiet-text"><b>${number(group.count)}×</b>${group.last > 0 && html`, last <span title=${dateAndTime(group.last)}>${ago(group.last)}</span>`}</p>
      ${group.count > 1 && group.last > 0 && group.trend.counts.length > 1 && html`<${Trend} group=${group} />`}
      <${Samples} group=${group} />
      <a class="button" data-row href=${streamOf({ rule, tool, server: serverName(server) })}>Show in the stream</a>
      ${REPORT === null && html`<${Button} onClick=${() => askForException(rule, toolOf(tool, group.entry), server)}>Make an exception…<//>`}
    </div>
    <details class="branch"><summary>Expected and found; the rule <code>${rule}</code></summary>
      <${Compare} expected=${group.expected} found=${group.found} label="Found, the last time" />
      <${RuleFacts} rule=${about} /></details>
  </article>`;
}

/** Findings that stop messages come first, then those that came most often; those of a baseline last. */
function byWeight(one, other) {
  const stops = (group) => group.blocked + group.wouldBlock + group.quarantined + group.wouldQuarantine > 0;
  return Boolean(one.known) - Boolean(other.known) || stops(other) - stops(one) || other.count - one.count || one.id - other.id;
}

const SHOWN = 12;
/** Kinds of findings of a server that are shown at first. */

function ServerCard({ server, all }) {
  const [sorted, place] = useSteady(all, (each) => each.id, byWeight);
  const [isWhole, setWhole] = useState(all.length <= SHOWN + 3);
  const count = all.reduce((sum, each) => sum + each.count, 0);
  return html`<section class="card panel" aria-label="Findings of ${serverName(server)}" ref=${place}>
    <div class="card-head"><h2>${serverName(server)}</h2><span class="quiet-text">${counted(count, "finding")}</span></div>
    ${(isWhole ? sorted : sorted.slice(0, SHOWN)).map((each) => html`<${Group} key=${each.id} group=${each} />`)}
    ${!isWhole && html`<p class="finding"><${Button} data-row onClick=${() => setWhole(true)}>Show ${number(all.length - SHOWN)} more kinds<//></p>`}
  </section>`;
}

function Lead({ shown, server }) {
  const of = servers.value.filter((each) => server === null || each.id === server);
  const blocked = of.reduce((sum, each) => sum + each.blocked, 0);
  const wouldBlock = of.reduce((sum, each) => sum + each.wouldBlock, 0);
  const count = shown.reduce((sum, each) => sum + each.count, 0);
  return html`<p class="lead">
    ${server !== null && servers.value.length > 1 && html`Only <strong>${serverName(server)}</strong>: <a href=${routeTo("findings")}>show all servers</a>. `}
    ${wouldBlock > 0 && html`<strong>Enforce mode would have blocked ${counted(wouldBlock, "more message")}.</strong> `}
    ${blocked > 0 && `${counted(blocked, "message was", "messages were")} blocked. `}
    ${`${counted(count, "finding")} of ${counted(shown.length, "kind")}.`}
  </p>`;
}

/** The screen. */
export function FindingsScreen({ options }) {
  void clock.value;
  useEffect(() => attempted(readFindings), []);
  const server = options.server ? Number(options.server) : null;
  const all = [...(groups.value?.values() ?? [])];
  const shown = all.filter((each) => server === null || each.server === server);
  const cards = new Map();
  for (const each of shown) cards.set(each.server, [...(cards.get(each.server) ?? []), each]);
  const best = (one, other) => cards.get(one).toSorted(byWeight)[0];
  const [order, place] = useSteady([...cards.keys()], (each) => each, (one, other) => byWeight(best(one), best(other)));
  const wants = server === null ? {} : { filter: filterOf({ server: serverName(server) }) };
  const canExport = shown.length > 0 && state.value.formats.includes("sarif");
  const name = servers.value.length === 1 ? servers.value[0].name : null;
  return html`<section>
    <${ScreenHead} title="Findings" about=${name === null ? "What is wrong, and how to fix it." : `What is wrong with the messages of ${name}, and how to fix it.`}>
      ${canExport && html`<${Button} onClick=${() => saveExport({ format: "sarif", ...wants })}
        title="Places in the file are lines of the journal, which the stream exports">Export as SARIF<//>`}
    <//>
    ${groups.value === null
      ? html`<p class="quiet-text" role="status">Reading the findings…</p>`
      : shown.length === 0
        ? stream.value.rows.newest === 0
          ? html`<${NothingYet}>No messages yet. Findings appear here as soon as a guard reports one.<//>`
          : html`<${Empty}><p>No findings${server !== null ? ` of ${serverName(server)}` : ""}: every message so far is valid.</p>
              ${server !== null && html`<a href=${routeTo("findings")}>Show all servers</a>`}<//>`
        : html`<${Lead} shown=${shown} server=${server} />
            <div ref=${place}>${order.map((each) => html`<${ServerCard} key=${each} server=${each} all=${cards.get(each)} />`)}</div>`}
  </section>`;
}
