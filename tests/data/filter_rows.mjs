// Which rows match each filter, by the code of the page: reads {columns, rows, servers, filters}, writes lists of seqs.
import { readFileSync } from "node:fs";

const web = process.argv[2];
const { FilteredLines } = await import(`${web}/console_filter.js`);
const { ConsoleStore } = await import(`${web}/console_store.js`);

const { columns, rows, servers, filters } = JSON.parse(readFileSync(0, "utf8"));
const store = new ConsoleStore();
store.load({ limits: { rows: 1000 }, servers }, { columns, rows });
const matches = filters.map((text) => {
  const lines = new FilteredLines(store, text, false, () => {});
  return rows.map(([seq]) => seq).filter((seq) => lines.wants(seq));
});
console.log(JSON.stringify(matches));
