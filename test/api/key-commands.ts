/** The real `luxhub keys …` for tests of the API, on the data directory or the database of a running hub. */
import { expect } from "bun:test";
import { PROGRAM } from "../support/executable.ts";
import { ADMIN_KEY, type CallOptions, SECRET, type TestHub } from "../support/hub.ts";

/** Runs `luxhub keys …` on the hub's data directory. Returns the output. */
export async function runKeys(hub: TestHub, ...words: string[]): Promise<string> {
  const database = hub.database === null ? {} : { LUXHUB_DATABASE: hub.database };
  const child = Bun.spawn([...PROGRAM, "keys", ...words, "--data", hub.dataDir], {
    env: { ...process.env, ...database, LUXHUB_SECRET: SECRET, LUXHUB_ADMIN_KEY: ADMIN_KEY },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect({ code, err }).toEqual({
    code: 0,
    err: expect.stringMatching(words[0] === "add" ? /^This is / : /^$/),
  });
  return out;
}

/** Runs `luxhub keys …`, and lets the hub load the changes. Returns the output. */
export async function keys(hub: TestHub, ...words: string[]): Promise<string> {
  const out = await runKeys(hub, ...words);
  hub.clock.pass(1_000);
  await hub.sweep();
  return out;
}

/** Makes a key over HTTP, as the command would do; its secret. */
export async function addKey(
  hub: TestHub,
  name: string,
  fields: Readonly<Record<string, string | number>> = {},
): Promise<string> {
  const { status, body } = await hub.admin("/key/add", { name, ...fields });
  expect({ status, name: body["name"] }).toEqual({ status: 200, name });
  return String(body["secret"]);
}

export function as(secret: string | null, more: CallOptions = {}): CallOptions {
  return { ...more, headers: { "X-Matrix-Secret": secret, ...more.headers } };
}
