/** Requests to the console, as docs/console-api.md describes them. All addresses are relative. */

import { sentence } from "./text.js";

/** An error of the console: `code` for programs, `message` and `remedy` for people. */
export class ApiError extends Error {
  constructor(status, detail) {
    super(detail.message ?? `The console answered with status ${status}.`);
    this.status = status;
    this.code = detail.code ?? "failed";
    this.remedy = detail.remedy ?? "";
  }

  /** The message, with what to do about it. */
  get text() {
    return [this.message, this.remedy].filter(Boolean).map(sentence).join(" ");
  }
}

/** Return the text of any error for people. */
export function errorText(error) {
  if (error instanceof ApiError) return error.text;
  return error instanceof TypeError ? "The console does not answer. Is it still running?" : String(error);
}

async function checked(response) {
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new ApiError(response.status, body.error ?? {});
}

/** Return the JSON of a `GET`. */
export async function read(path) {
  return (await checked(await fetch(`api/${path}`, { headers: { accept: "application/json" } }))).json();
}

function post(path, body) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return fetch(`api/${path}`, options).then(checked);
}

/** Return the JSON of a `POST`. */
export async function send(path, body) {
  return (await post(path, body)).json();
}

/** Return an exported file: its name, its text, and the number of rows that could not be exported. */
export async function exported(request) {
  const response = await post("export", request);
  const [, name] = /filename="?([^";]+)"?/.exec(response.headers.get("content-disposition") ?? "") ?? [];
  return {
    name: name ?? `assay.${request.format}`,
    text: await response.text(),
    left: Number(response.headers.get("assay-left-out") ?? 0),
  };
}
