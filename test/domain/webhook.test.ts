/** The rules of webhooks: how long they wait, when they are suspended, and what changes nothing. */
import { describe, expect, test } from "bun:test";
import type { Accepted } from "../../src/domain/decision.ts";
import * as limit from "../../src/domain/limits.ts";
import type { Webhook } from "../../src/domain/model.ts";
import { delivered, failed, isSame, passed } from "../../src/domain/webhook.ts";
import { DAY_MS, HOUR_MS, SECOND_MS } from "../../src/lib/clock.ts";
import { must } from "../../src/lib/assert.ts";

const NOW = 1_000_000_000_000;

const HOOK: Webhook = {
  name: "ci",
  url: "https://receiver.test/secret-path",
  format: "luxhub",
  filter: { kinds: [], taskId: null, nodeId: null, creatorNode: null, group: null },
  push: null,
  webhookId: "w",
  secret: "whsec_secret",
  revision: 1,
  cursor: 5,
  state: "active",
  attempts: 0,
  failingSince: null,
  nextAt: null,
  lastError: null,
  deliveredAt: null,
  createdAt: 1,
  updatedAt: 1,
};
const PUSH = { configId: "c", caller: "k", contextId: "x", token: "", authentication: null };
const FAULT = { error: "HTTP 500", isGone: false, retryAfterMs: null, random: 0 };

const stateOf = ({ answer }: Accepted<Webhook | null>): Webhook => must(answer, "it is still there");
const kindsOf = ({ changes }: Accepted<unknown>): readonly string[] =>
  changes.map((change) => (change.kind === "event.logged" ? change.event.kind : change.kind));

/** The webhook after so many failures, each as soon as it may be, and the delays between them. */
function failing(
  times: number,
  random: number,
): { readonly webhook: Webhook; readonly delays: readonly number[] } {
  let webhook = HOOK;
  let now = NOW;
  const delays: number[] = [];
  for (let i = 0; i < times && webhook.state === "active"; i++) {
    webhook = stateOf(failed(webhook, { ...FAULT, random }, now));
    if (webhook.nextAt === null) break;
    delays.push(webhook.nextAt - now);
    now = webhook.nextAt;
  }
  return { webhook, delays };
}

describe("a failed delivery", () => {
  test("is tried again after twice as long each time, up to an hour", () => {
    const { delays } = failing(14, 0);
    const doubled = Array.from({ length: 12 }, (_, n) => SECOND_MS * 2 ** n);
    expect(delays).toEqual([...doubled, HOUR_MS, HOUR_MS]);
  });

  test("is delayed by chance, never by more than an hour", () => {
    const { delays } = failing(14, 0.999);
    for (const [n, delay] of delays.entries())
      expect(delay).toBeWithin(
        Math.min(SECOND_MS * 2 ** n, HOUR_MS),
        Math.min(SECOND_MS * 1.5 * 2 ** n, HOUR_MS) + 1,
      );
  });

  test("waits for what the receiver asks, but not for weeks", () => {
    const after = (retryAfterMs: number): number =>
      must(stateOf(failed(HOOK, { ...FAULT, retryAfterMs }, NOW)).nextAt, "it is tried again") - NOW;
    expect([after(0), after(90 * SECOND_MS), after(30 * DAY_MS)]).toEqual([
      SECOND_MS,
      90 * SECOND_MS,
      limit.WEBHOOK_RETRY_AFTER_MAX_MS,
    ]);
  });

  test("suspends after a day of attempts", () => {
    const { webhook, delays } = failing(1_000, 0);
    const took = delays.reduce((sum, delay) => sum + delay, 0);
    expect(webhook).toMatchObject({ state: "suspended", nextAt: null, cursor: 5, lastError: "HTTP 500" });
    expect(took).toBeWithin(DAY_MS, DAY_MS + HOUR_MS + 1);
  });

  test("does not suspend after a day in which the machine slept", () => {
    const before = { ...HOOK, attempts: 2, failingSince: NOW - 3 * DAY_MS, lastError: "HTTP 500" };
    expect(stateOf(failed(before, FAULT, NOW)).state).toBe("active");
  });

  test("with 410 suspends at once, and logs no URL and no secret", () => {
    const gone = failed(HOOK, { ...FAULT, error: "HTTP 410", isGone: true }, NOW);
    expect(stateOf(gone)).toMatchObject({ state: "suspended", attempts: 1 });
    expect(kindsOf(gone)).toEqual(["webhook.moved", "webhook.suspended"]);
    expect(JSON.stringify(gone.changes)).not.toMatch(/secret/);
  });

  test("of a push deletes it where another one is suspended", () => {
    const push = { ...HOOK, push: PUSH, filter: { ...HOOK.filter, taskId: "t" } };
    const gone = failed(push, { ...FAULT, isGone: true }, NOW);
    expect([gone.answer, kindsOf(gone)]).toEqual([null, ["webhook.deleted", "webhook.deleted"]]);
    expect(stateOf(failed(push, FAULT, NOW)).state).toBe("active");
  });
});

test("a delivery moves the cursor and forgets the failures; one that ends a push deletes it", () => {
  const before = { ...HOOK, attempts: 3, failingSince: 1, lastError: "HTTP 500", nextAt: 2 };
  expect(stateOf(delivered(before, 9, false, NOW))).toEqual({ ...HOOK, cursor: 9, deliveredAt: NOW });
  expect(delivered({ ...before, push: PUSH }, 9, true, NOW).answer).toBeNull();
  expect(stateOf(delivered(before, 9, true, NOW)).cursor).toBe(9);
  expect(passed(before, 9).answer).toEqual({ ...before, cursor: 9 });
});

test("what another hub or an administrator has changed is not the same", () => {
  for (const changed of [{ cursor: 6 }, { revision: 2 }, { webhookId: "x" }, { attempts: 1 }])
    expect(isSame({ ...HOOK, ...changed }, HOOK)).toBeFalse();
  expect(isSame({ ...HOOK }, HOOK)).toBeTrue();
  expect(isSame(null, HOOK)).toBeFalse();
});
