// Unpacks the browser of @sparticuz/chromium into the directory TMPDIR, and prints its path.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("package.json", import.meta.url));
const { default: chromium } = await import(pathToFileURL(require.resolve("@sparticuz/chromium")).href);
process.stdout.write(await chromium.executablePath());
