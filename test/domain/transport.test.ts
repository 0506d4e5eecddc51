/** The event transport.changed (domain/transport.ts): each change is logged once, whichever hub notices it. */
import { expect, test } from "bun:test";
import type { LoggedEvent } from "../../src/domain/event.ts";
import { changeTransport } from "../../src/domain/transport.ts";
import { NOW } from "./samples.ts";

const logged = (to: string): LoggedEvent => ({
  ...{ id: 7, kind: "transport.changed", at: NOW - 1, nodeId: null, taskId: null, data: { from: "x", to } },
  verified: false,
});

const ROWS: readonly (readonly [string, LoggedEvent | null, string, string, object | null])[] = [
  ["the first change", null, "redis", "sqlite", { from: "redis", to: "sqlite" }],
  ["a start without a change", null, "redis", "redis", null],
  ["a change that another hub has logged", logged("sqlite"), "redis", "sqlite", null],
  ["back again", logged("sqlite"), "sqlite", "redis", { from: "sqlite", to: "redis" }],
  [
    "a start after a run that ended on the store",
    logged("sqlite"),
    "redis",
    "redis",
    { from: "sqlite", to: "redis" },
  ],
  ["a change whose predecessor was deleted", null, "sqlite", "redis", { from: "sqlite", to: "redis" }],
];

for (const [name, newest, from, to, data] of ROWS)
  test(name, () => {
    const { answer, changes } = changeTransport(newest, { from, to, at: NOW });
    const event = { kind: "transport.changed", at: NOW, nodeId: null, taskId: null, data };
    expect<unknown>({ answer, changes }).toEqual({
      answer: null,
      changes: data === null ? [] : [{ kind: "event.logged", event }],
    });
  });
