/**
 * Hubs of two versions with the same schema on one database (docs/versioning.md): what one has made the other takes. The
 * recorded words are of an earlier build. If this test fails, the changelog must tell to stop all hubs at the update.
 */
import { expect, test } from "bun:test";
import { hashJson } from "../../src/api/idempotency.ts";
import { ANSWER_MARK_ROUNDS } from "../../src/domain/limits.ts";
import { slowHash } from "../../src/lib/slow-hash.ts";
import { AnswerTokens } from "../../src/service/answer-tokens.ts";
import { Tickets } from "../../src/service/tickets.ts";
import { NOW } from "../domain/samples.ts";

const derive = (...by: [string, number, number]) => slowHash("a secret of the hub", ...by);
const clock = { now: () => NOW };

test("tickets of presigned URLs", async () => {
  const key = { keyId: "primary" };
  const keys = { derive, named: () => key, refresh: async () => {} } as unknown as ConstructorParameters<
    typeof Tickets
  >[0];
  const tickets = new Tickets(keys, clock);
  for (const [kind, text] of [
    ["download", "WyJkb3dubG9hZCIsMTc0OTk4OTQwMCwicHJpbWFyeSJd.byBsaxypUn_egU4GCWbYXg"],
    [
      "upload",
      "WyJ1cGxvYWQiLDE3NDk5ODk0MDAsInByaW1hcnkiLCJmNDE1NjE2ZS0xYzNkLTRjNTEtOGM1MC1mMWU5NDQ4YWQ5NjEiLCJuMSIsInQxIl0.Xi7RRbGjiY4nHR0JJREt-A",
    ],
  ] as const)
    expect(await tickets.redeem(text, { kind, fileId: kind === "download" ? "f1" : "" })).toMatchObject({
      key,
    });
});

test("tokens that answer a question", async () => {
  const tokens = new AnswerTokens({ derive }, clock);
  const grant = { taskId: "t1", questionId: "q1", choice: 2 };
  expect(await tokens.redeem("WyJ0MSIsInExIiwyLDE3NDk5ODg4NjBd.3sK7vuJZniOCPZK-CSilEg")).toEqual(grant);
});

test("the fingerprint of a request with an Idempotency-Key", async () => {
  expect(await derive("luxhub answers", ANSWER_MARK_ROUNDS, 4)).toBe("eb7347bd");
  expect(hashJson({ title: "t", tags: ["a"], n: 1 })).toBe(
    "13b9eb74dd622907afae0af46cd026288bf2ab731fc99c85b8970fefb33178b2",
  );
});
