/** How many limits and holds there may be: every key may hold, and must not take the room of the limits. */
import { expect, test } from "bun:test";
import { gateAt } from "../../src/domain/gate.ts";
import { hold, setLimit } from "../../src/domain/limit.ts";
import { HOLDS_MAX, LIMITS_MAX } from "../../src/domain/limits.ts";
import type { Gate, LimitState } from "../../src/domain/model.ts";
import { SECOND_MS } from "../../src/lib/clock.ts";
import { NOW } from "./samples.ts";

const row = (key: string, fields: Partial<LimitState>): LimitState => ({
  ...{ key, running: null, perMinute: null, hold: null, inUse: 0, uses: [] },
  ...fields,
});
const holds = Array.from({ length: HOLDS_MAX }, (_, i) =>
  row(`held ${i}`, { hold: { at: NOW, until: NOW + (i + 1) * SECOND_MS, by: null } }),
);
const limits = Array.from({ length: LIMITS_MAX }, (_, i) =>
  row(`limit ${i}`, i % 2 === 0 ? { running: 1 } : { perMinute: 1 }),
);

const gateOf = (...rows: readonly LimitState[]): Gate =>
  gateAt({ day: 0, budgets: [], pauses: [], limits: rows }, NOW);
const limited = (gate: Gate, key: string): string =>
  setLimit(gate, { key, running: 2, perMinute: null }, NOW).kind;
const held = (gate: Gate, key: string, at = NOW): string =>
  hold(gate, { key, forMs: SECOND_MS, nodeId: null }, at).kind;

test("all holds that there may be leave room for limits, and all limits for holds", () => {
  expect(limited(gateOf(...holds), "new")).toBe("accepted");
  expect(held(gateOf(...limits), "new")).toBe("accepted");
  const full = gateOf(...holds, ...limits);
  expect([limited(full, "new"), held(full, "new")]).toEqual(["rejected", "rejected"]);
});

test("what is there may be changed, and a key with a limit held", () => {
  const full = gateOf(...holds, ...limits);
  expect([limited(full, "limit 0"), held(full, "limit 0")]).toEqual(["accepted", "accepted"]);
  expect(held(full, "held 0")).toBe("accepted");
  expect(limited(full, "held 0")).toBe("rejected"); // it would be one limit more
  expect(limited(gateOf(...holds), "held 0")).toBe("accepted");
});

test("a hold that is over takes no room", () => {
  const full = gateOf(...holds, ...limits);
  const oneIsOver = NOW + SECOND_MS;
  expect(held(full, "new", oneIsOver)).toBe("accepted");
  const oneMore = gateOf(
    ...holds,
    ...limits,
    row("new", { hold: { at: NOW, until: NOW + 3_600 * SECOND_MS, by: null } }),
  );
  expect(held(oneMore, "held 0", oneIsOver)).toBe("rejected"); // it has lost its place to the new one
});

test("a hold has an event only if it lasts a second longer than before", () => {
  const until = (until: number) => gateOf(row("held", { hold: { at: NOW - 2, until, by: null } }));
  const kinds = (gate: Gate): readonly string[] => {
    const held = hold(gate, { key: "held", forMs: SECOND_MS, nodeId: null }, NOW);
    return held.kind === "accepted" ? held.changes.map(({ kind }) => kind) : [held.code];
  };
  expect(kinds(gateOf())).toEqual(["limit.saved", "event.logged"]);
  expect(kinds(until(NOW - 1))).toContain("event.logged");
  expect(kinds(until(NOW + 1))).toEqual(["limit.saved"]);
  expect(kinds(until(NOW + 2 * SECOND_MS))).toEqual([]);
});
