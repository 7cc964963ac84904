/** A histogram of durations, drawn by uPlot, which the page loads before its modules. Colours come from the style sheet. */

import { themed } from "./theme.js";
import { number } from "./text.js";
import { html, useEffect, useRef, useState } from "./view.js";

const HEIGHT = 180;
const GROWTH = 1.09;
/** Buckets of durations grow by this factor. */

const MOST_BUCKETS = 60;

/** Return `[from, to, count]` without gaps, and fewer of them if there are many. */
function widened(given) {
  const counts = new Map(given.map(([upper, count]) => [Math.round(Math.log(upper) / Math.log(GROWTH)), count]));
  const places = [...counts.keys()].filter(Number.isFinite);
  const [first, last] = [Math.min(...places), Math.max(...places)];
  const step = Math.max(1, Math.ceil((last - first + 1) / MOST_BUCKETS));
  const buckets = [];
  for (let at = first; at <= last; at += step) {
    let count = 0;
    for (let inside = at; inside < at + step; inside += 1) count += counts.get(inside) ?? 0;
    buckets.push([GROWTH ** (at - 1), GROWTH ** (at + step - 1), count]);
  }
  return buckets;
}

const ROUND = [1, 2, 5];

/** Return the round durations within the buckets, with where each is between them: 1 ms, 2 ms, 5 ms, 10 ms. */
function roundTicks(buckets) {
  const [least, most] = [buckets[0][0], buckets.at(-1)[1]];
  const ticks = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power += 1)
    for (const each of ROUND) {
      const value = each * 10 ** power;
      if (value < least || value > most) continue;
      ticks.push({ value, at: ((Math.log(value) - Math.log(least)) / (Math.log(most) - Math.log(least))) * buckets.length - 0.5 });
    }
  return ticks;
}

function optionsOf(host, buckets, format, point) {
  const colour = (name) => getComputedStyle(host).getPropertyValue(name).trim();
  const line = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: colour("--quiet"), font: "12px system-ui, sans-serif", ticks: { ...line, size: 4 } };
  const ticks = roundTicks(buckets);
  const apart = Math.max(1, Math.ceil((ticks.length * 64) / Math.max(64, host.clientWidth)));
  const shown = ticks.filter((_, at) => at % apart === 0);
  return {
    width: host.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false },
    scales: {
      x: { time: false, range: () => [-0.6, buckets.length - 0.4] },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
    },
    series: [
      {},
      { fill: colour("--accent"), width: 0, points: { show: false }, paths: globalThis.uPlot.paths.bars({ size: [0.9, 60], gap: 0 }) },
    ],
    axes: [
      { ...axis, grid: { show: false }, size: 28, splits: () => shown.map((each) => each.at), values: () => shown.map((each) => format(each.value)) },
      { ...axis, grid: line, size: 48, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6], values: (_, splits) => splits.map(number) },
    ],
    hooks: { setCursor: [(plot) => point(plot.cursor.idx ?? null)] },
  };
}

/** The histogram. *buckets* are pairs of an upper bound and a count; *format* writes a bound. */
export function Histogram({ title, buckets: given, format, noun }) {
  const host = useRef(null);
  const [at, point] = useState(null);
  const [width, resized] = useState(0);
  const buckets = widened(given);
  const theme = themed.value;
  useEffect(() => {
    const observer = new ResizeObserver(() => resized(Math.floor(host.current.clientWidth)));
    observer.observe(host.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (globalThis.uPlot === undefined || width === 0) return undefined;
    const data = [buckets.map((_, index) => index), buckets.map(([, , count]) => count)];
    const plot = new globalThis.uPlot(optionsOf(host.current, buckets, format, point), data, host.current);
    return () => plot.destroy();
  }, [JSON.stringify(given), width, theme]);
  const [from, to, count] = buckets[at] ?? [];
  return html`<figure>
    <figcaption>${title}</figcaption>
    <div class="chart" role="img" aria-label=${title} ref=${host}></div>
    <p class="chart-readout" aria-hidden="true">${count === undefined ? "\u00a0" : `${format(from)} to ${format(to)}: ${number(count)} ${noun}`}</p>
  </figure>`;
}
