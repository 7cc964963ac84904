// Which rows match each filter, by the code of the page: reads {columns, rows, servers, filters}, writes lists of seqs.
import { readFileSync } from "node:fs";

const web = process.argv[2];
const { FilteredLines } = await import(`${web}/filter.js`);
const { RowStore } = await import(`${web}/rows.js`);

const { columns, rows, servers, filters } = JSON.parse(readFileSync(0, "utf8"));
const store = new RowStore(1000);
store.add(rows, columns);
const nameOf = (id) => servers.find((each) => each.id === id).name;
const matches = filters.map((text) => {
  const lines = new FilteredLines(store, text, { folds: false, nameOf }, () => {});
  return rows.map(([seq]) => seq).filter((seq) => lines.wants(seq));
});
console.log(JSON.stringify(matches));
