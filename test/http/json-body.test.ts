/** How large JSON bodies share the event loop. Their limits are tested through the API (test/api/bounds.test.ts). */
import { expect, test } from "bun:test";
import { type BodyRoom, readJsonObject } from "../../src/http/json-body.ts";

const LIMITS = { maxBytes: 1_000_000, maxValues: 100, deadlineMs: 60_000 };
const BODIES = 5;

/** The ticks of the event loop in which so many bodies of this size, sent at once, are parsed; and the room they keep. */
async function parsedAt(bytes: number): Promise<{ ticks: number[]; room: number[] }> {
  let tick = 0;
  let isOver = false;
  const count = (): void => {
    tick++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  let taken = 0;
  const room: BodyRoom = { take: (more) => void (taken += more), give: (less) => void (taken -= less) };
  const ticks: number[] = [];
  const rooms: number[] = [];
  const parse = (text: string): unknown => {
    ticks.push(tick);
    rooms.push(taken);
    return JSON.parse(text);
  };
  const body = JSON.stringify({ a: "x".repeat(bytes) });
  const headers = { "Content-Length": String(body.length) };
  await Promise.all(
    Array.from({ length: BODIES }, () =>
      readJsonObject(
        new Request("http://hub/", { method: "POST", body, headers }),
        LIMITS,
        () => room,
        undefined,
        parse,
      ),
    ),
  );
  isOver = true;
  expect(taken).toBe(0);
  return { ticks, room: rooms };
}

test("large bodies are parsed one in a tick, and keep their room until then", async () => {
  const { ticks, room } = await parsedAt(100_000);
  expect(new Set(ticks).size).toBe(BODIES);
  expect(room[0]).toBeGreaterThanOrEqual((BODIES - 1) * 100_000);
});

test("small bodies that arrive together are parsed together", async () => {
  const { ticks } = await parsedAt(1_000);
  expect(new Set(ticks).size).toBe(1);
});
