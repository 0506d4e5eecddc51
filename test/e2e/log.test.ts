/** The log when nobody takes its lines: a pager that waits, a terminal on Ctrl-S, a collector that hangs. */
import { expect, test } from "bun:test";
import { LOG_HELD_MAX_CHARS } from "../../src/domain/limits.ts";
import { FROM_SOURCE, TempDir } from "./program.ts";

const PAD = "x".repeat(12_000);
/** Together they are twice what is held. */
const REQUESTS = Math.ceil((2 * LOG_HELD_MAX_CHARS) / PAD.length);
const AT_ONCE = 8;

/** A hub whose standard output is read when it is asked for. */
async function startUnread(data: string) {
  const args = ["serve", "--port", "0", "--host", "127.0.0.1", "--data", data, "--log", "json"];
  const child = Bun.spawn([...FROM_SOURCE, ...args], { stdout: "pipe", stderr: "inherit" });
  const reader = child.stdout.getReader();
  const decoder = new TextDecoder();
  let text = "";
  /** Reads on until it says something. */
  const readTo = async (pattern: RegExp): Promise<string> => {
    while (!pattern.test(text)) {
      const { done, value } = await reader.read();
      if (done) throw new Error(`ended without ${pattern}`);
      text += decoder.decode(value, { stream: true });
    }
    return text;
  };
  const url = /"url":"([^"]+)"/.exec(await readTo(/"url":"[^"]+".*\n/))?.[1] ?? "";
  const ask = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await (await fetch(`${url}/${PAD}`)).text();
  };
  const askAll = () => Promise.all(Array.from({ length: AT_ONCE }, () => ask(Math.ceil(REQUESTS / AT_ONCE))));
  return { child, readTo, askAll };
}

test("a bounded part of it is held, the rest is dropped and counted", async () => {
  using dir = new TempDir();
  const { child, readTo, askAll } = await startUnread(dir.join("data"));
  try {
    await askAll();
    const text = await readTo(/"lines of the log were lost.*\n/);
    const shown = text.match(/"message":"request"/g)?.length ?? 0;
    const lost = Number(/were lost[^\n]*"lines":(\d+)/.exec(text)?.[1]);
    expect(shown + lost).toBe(AT_ONCE * Math.ceil(REQUESTS / AT_ONCE));
    expect(shown * PAD.length).toBeGreaterThan(LOG_HELD_MAX_CHARS / 2);
    expect(text.length).toBeLessThan(1.2 * LOG_HELD_MAX_CHARS);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
}, 20_000);

test("the hub ends all the same", async () => {
  using dir = new TempDir();
  const { child, askAll } = await startUnread(dir.join("data"));
  try {
    await askAll();
    child.kill("SIGTERM");
    expect(await Promise.race([child.exited, Bun.sleep(8_000)])).toBe(0);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
}, 20_000);
