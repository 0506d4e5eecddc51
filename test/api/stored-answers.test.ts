/** Idempotency-Key (idempotency.test.ts), where a caller hangs up, many wait, or luxhub 0.1.0 stored the answer. */
import { expect, test } from "bun:test";
import { type Attempt, Idempotency } from "../../src/api/idempotency.ts";
import { shareOfAddress } from "../../src/api/caller-shares.ts";
import { ResponseBackpressure } from "../../src/api/response-backpressure.ts";
import { WAIT_SHARES } from "../../src/domain/limits.ts";
import { TestClock, startHub } from "../support/hub.ts";
import { play } from "../support/transcript.ts";
import { hold, ok, rawPost } from "./scene.ts";

test("a caller that hung up gets, when it repeats, the messages taken for it", async () => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const body = { node_id: "n1", blocking: true, timeout: 60 };
  const first = await hold(hub.port(), rawPost("/message/receive", body, ["Idempotency-Key: k1"]));
  await ok(hub.get("/status")); // came later, so the first is there
  first.hangUp();
  await hub.send("op", "n1", { content: "for you" });
  const again = await hub.post("/message/receive", body, { headers: { "Idempotency-Key": "k1" } });
  expect(await ok(again)).toMatchObject({ messages: [{ content: "for you" }] });
  await play(hub, "message/receive n1 -> messages []");
});

type Stored = { readonly asked: string; readonly status: number; readonly body: string };

/** Over a store of which only this one read is asked for; counts the calls that wait. */
function overStore(read: () => Stored | null) {
  const store = { read: async () => read() } as unknown as ConstructorParameters<typeof Idempotency>[0];
  const keys = { derive: async () => "" };
  const idempotency = new Idempotency(store, new TestClock(), new ResponseBackpressure(), keys, 1);
  const waiting = { count: 0 };
  const attempt = (asked: string): Attempt => ({
    scope: "s",
    asked,
    isPrimary: false,
    exchange: {} as Attempt["exchange"],
    transact: () => Promise.reject(new Error("written")),
    share: () => shareOfAddress("a"),
    hold: <T>(wait: (signal: AbortSignal) => Promise<T>) => (
      waiting.count++,
      wait(new AbortController().signal)
    ),
  });
  const run = (asked: string, first: () => Promise<string>) => idempotency.run(attempt(asked), first);
  return { run, waiting };
}

test("as many repeats as may wait all get the stored answer", async () => {
  let stored: Stored | null = null;
  const { run, waiting } = overStore(() => stored);
  const first = Promise.withResolvers<string>();
  let runs = 0;
  const attempt = () => run("h", () => (runs++, first.promise));
  const running = attempt();
  const repeats = Array.from({ length: WAIT_SHARES.keys }, attempt);
  stored = { asked: "h", status: 200, body: "{}" };
  first.resolve("{}");
  await running;
  for (const answer of await Promise.all(repeats))
    expect(answer instanceof Response && answer.headers.get("idempotent-replayed")).toBe("true");
  expect([runs, waiting.count]).toEqual([1, WAIT_SHARES.keys]);
});

test("an answer that luxhub 0.1.0 stored, without the variant, is replayed for its own body", async () => {
  const { run } = overStore(() => ({ asked: "hash", status: 200, body: "{}" }));
  const never = () => Promise.reject(new Error("done twice"));
  const again = await run("A hash", never);
  expect(again instanceof Response && (await again.text())).toBe("{}");
  await expect(run("A other", never)).rejects.toThrow("another body");
});
