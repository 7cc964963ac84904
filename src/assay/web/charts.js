/** Charts, drawn by uPlot, which a page loads before its modules. Colours come from the style sheet. */

import { element, svg } from "./dom.js";
import { number, visibleText } from "./text.js";

const HEIGHT = 180;

const charts = new Set();

function colour(host, name) {
  return getComputedStyle(host).getPropertyValue(name).trim();
}

function axis(host, options) {
  const line = { stroke: colour(host, "--line"), width: 1 };
  return {
    stroke: colour(host, "--quiet"),
    font: "12px system-ui, sans-serif",
    grid: { ...line, show: options.grid ?? true },
    ticks: { ...line, size: 4 },
    ...options.axis,
  };
}

/** Let go of charts whose place is no longer in the page. */
function forget() {
  for (const each of charts) {
    if (!each.wasSeen || each.host.isConnected) continue;
    each.observer.disconnect();
    each.erase();
    charts.delete(each);
  }
}

/** Draw again in the colours of the new theme. */
export function redrawCharts() {
  for (const each of charts) {
    // A chart that is out of the page has no colours: it is drawn when it is seen again.
    if (each.host.isConnected) each.draw();
    else each.erase();
  }
}

/** A chart in its place: drawn when it is seen for the first time, and again when its width changes. */
class Chart {
  constructor(host, make) {
    this.host = host;
    this.make = make;
    this.drawn = null;
    this.wasSeen = false;
    this.width = 0;
    forget();
    charts.add(this);
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(host);
  }

  fit() {
    const width = Math.floor(this.host.clientWidth);
    if (width === 0 || width === this.width) return;
    this.width = width;
    this.wasSeen = true;
    if (this.drawn === null) this.draw();
    else this.drawn.setSize({ width, height: HEIGHT });
  }

  erase() {
    this.drawn?.destroy();
    this.drawn = null;
    this.width = 0;
  }

  draw() {
    if (this.width === 0) return;
    if (globalThis.uPlot === undefined) {
      this.host.textContent = "The chart library does not run in this browser; the tables have the figures.";
      return;
    }
    this.drawn?.destroy();
    const { options, data } = this.make(this.host);
    const common = {
      width: this.width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false },
    };
    this.drawn = new globalThis.uPlot({ ...common, ...options }, data, this.host);
  }
}

/** Shows the values under the pointer in a line below the chart; its height never changes. */
function readout(host, describe) {
  const line = element("p", { class: "chart-readout", "aria-hidden": "true" }, "\u00a0");
  host.after(line);
  return {
    hooks: {
      setCursor: [
        (plot) => {
          const at = plot.cursor.idx;
          line.textContent = at === null || at === undefined ? "\u00a0" : describe(at);
        },
      ],
    },
  };
}

function bars(host, name) {
  return {
    stroke: colour(host, name),
    fill: colour(host, name),
    width: 0,
    points: { show: false },
    paths: globalThis.uPlot.paths.bars({ size: [0.9, 60], gap: 0 }),
  };
}

/**
 * Return a histogram with logarithmic buckets that can change: its `node`, and `show` with a title and its buckets.
 *
 * Buckets are `[from, to, count]` without gaps; *format* writes a limit of one.
 */
export function changingHistogram(format, noun) {
  let buckets = [];
  const host = element("div", { class: "chart", role: "img" });
  const caption = element("figcaption");
  const node = element("figure", null, caption, host);
  const describe = (at) => {
    const [from, to, count] = buckets[at] ?? [];
    return count === undefined ? "\u00a0" : `${format(from)} to ${format(to)}: ${number(count)} ${noun}`;
  };
  const plugin = readout(host, describe);
  const data = () => [buckets.map((_, at) => at), buckets.map((each) => each[2])];
  const make = () => ({
    data: data(),
    options: {
      ...plugin,
      scales: {
        x: { time: false, range: () => [-0.6, buckets.length - 0.4] },
        y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
      },
      series: [{}, bars(host, "--accent")],
      axes: [
        axis(host, {
          grid: false,
          axis: {
            size: 28,
            incrs: [1, 2, 4, 8, 16, 32, 64],
            space: 70,
            values: (_, splits) =>
              splits.map((at) => (Number.isInteger(at) && buckets[at] ? format(buckets[at][0]) : "")),
          },
        }),
        axis(host, {
          axis: {
            size: 48,
            incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6],
            values: (_, splits) => splits.map(number),
          },
        }),
      ],
    },
  });
  const chart = new Chart(host, make);
  const show = (title, given) => {
    buckets = given;
    caption.textContent = visibleText(title);
    host.setAttribute("aria-label", visibleText(title));
    chart.drawn?.setData(data());
  };
  return { node, show };
}

/** Return a histogram as a picture that stays: see `changingHistogram`. */
export function histogram(title, buckets, format, noun) {
  const { node, show } = changingHistogram(format, noun);
  show(title, buckets);
  return node;
}

/** A time on an axis whose labels are *step* seconds apart: the date, the minute, or the second. */
function moment(seconds, step) {
  const text = new Date(seconds * 1000).toISOString();
  if (step >= 86_400) return text.slice(0, 10);
  return step >= 60 ? text.slice(text.slice(11, 16) === "00:00" ? 5 : 11, 16).replace("T", " ") : text.slice(11, 19);
}

/** Return a chart of messages over time, with those that have findings in front. */
export function activity(title, points, describe) {
  const host = element("div", { class: "chart", role: "img", "aria-label": title });
  const figure = element("figure", null, element("figcaption", null, title), host);
  const plugin = readout(host, describe);
  const make = () => ({
    data: [points.map((each) => each[0] / 1000), points.map((each) => each[1]), points.map((each) => each[2])],
    options: {
      ...plugin,
      tzDate: (seconds) => globalThis.uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
      series: [{}, bars(host, "--bar"), bars(host, "--error")],
      axes: [
        axis(host, {
          grid: false,
          axis: { size: 28, space: 80, values: (_, splits, __, ___, step) => splits.map((each) => moment(each, step)) },
        }),
        axis(host, {
          axis: { size: 48, values: (_, splits) => splits.map((each) => (Number.isInteger(each) ? number(each) : "")) },
        }),
      ],
    },
  });
  new Chart(host, make);
  return figure;
}

/** Return a small picture of a histogram for a cell of a table; the numbers beside it say the same. */
export function miniHistogram(buckets) {
  const most = Math.max(1, ...buckets.map((each) => each[2]));
  const width = 100 / Math.max(12, buckets.length);
  const rows = buckets.map(([, , count], at) => {
    const height = count === 0 ? 0 : Math.max(6, (100 * count) / most);
    return svg("rect", { x: at * width, y: 100 - height, width: width * 0.85, height });
  });
  return svg(
    "svg",
    { class: "mini", viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" },
    ...rows,
  );
}
