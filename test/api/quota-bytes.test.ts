/**
 * Quotas of keys that are bound to a node: how many bytes each row counts, for whom, and what several commits or other
 * doors count. The running totals are compared with the rows when the hub closes, on PostgreSQL here.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  BATCH_REQUESTS_MAX,
  BROADCAST_STEP_NODES,
  KEPT_BLOCK_BYTES,
  KEPT_FILE_BYTES,
  KEPT_MESSAGE_BYTES,
} from "../../src/domain/limits.ts";
import { checkQuotas } from "../support/consistency-check.ts";
import { ADMIN_KEY, type Answer, type HubOptions, type TestHub, onlyOnce, startHub } from "../support/hub.ts";
import { play } from "../support/transcript.ts";
import { addKey } from "./key-commands.ts";
import { list, ok, record } from "./scene.ts";

const once = onlyOnce(import.meta.url);
const KIB = 1024;
const ADMIN = { "X-Admin-Key": ADMIN_KEY };

/** A hub with keys that are bound to n1 and n2, which are registered. */
class Scene implements AsyncDisposable {
  readonly hub: TestHub;
  readonly keys: { readonly k: { readonly secret: string }; readonly other: { readonly secret: string } };

  private constructor(hub: TestHub, k: string, other: string) {
    this.hub = hub;
    this.keys = { k: { secret: k }, other: { secret: other } };
  }

  static async open(options: HubOptions = {}): Promise<Scene> {
    const hub = await startHub(options);
    await hub.addNodes(["n1", "n2"]);
    const [k, other] = [
      await addKey(hub, "k", { node_id: "n1" }),
      await addKey(hub, "other", { node_id: "n2" }),
    ];
    return new Scene(hub, k, other);
  }

  play(lines: string, names: Readonly<Record<string, unknown>> = {}) {
    return play(this.hub, lines, { ...this.keys, ...names });
  }

  async usedBy(key: "k" | "other"): Promise<number> {
    const keys = list(await ok(this.hub.get("/key/list", { headers: ADMIN })), "keys");
    return Number(record(keys.find(({ name }) => name === key)?.["used"])["bytes"]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.hub.database !== null) await checkQuotas(this.hub.database);
    await this.hub.close();
  }
}

/** What n1's key does, or another, and by how many bytes its usage then changes. */
const STEPS: readonly (readonly [lines: string, from: number, to: number])[] = [
  ["t = as $k task/create {description: x*10000}", 10_000, 12_000],
  ["u = as $k task/create {depends_on: [$t]}", 700, 1_500],
  ["as $k task/claim $t n1", 0, 1_000],
  ["as $k task/extend $t n1 {note: é*500}", 2_000, 3_000], // and its event
  ["as $k task/fail $t n1 {error: e*3000}", 5_000, 7_000], // less the note
  ["tick 1m; node/heartbeat n2; sweep; task/claim $t n2", 0, 2_000], // its backoff is over
  ["task/complete $t n2 {result: {problem: x*10000}}", 9_500, 11_000], // and an edge less
  ["admin task/delete $t", -40_000, -20_000],
  ["f = as $k upload a.bin {content: x}", KEPT_BLOCK_BYTES, 2 * KEPT_BLOCK_BYTES],
  [
    "as $k upload a.bin {content: x*5000}",
    2 * KEPT_BLOCK_BYTES + KEPT_FILE_BYTES,
    2 * KEPT_BLOCK_BYTES + 2 * KEPT_FILE_BYTES + 400,
  ],
  ["file/delete {file_id: $f}", -KEPT_BLOCK_BYTES - KEPT_FILE_BYTES - 200, -KEPT_BLOCK_BYTES],
  ["as $k message/send n1 n2 {content: x*10000}", 10_001, 12_000],
  [
    "message/receive n2; as $k message/broadcast n1 {content: x}",
    KEPT_MESSAGE_BYTES + 1,
    KEPT_MESSAGE_BYTES + KIB,
  ],
  ["message/send n2 n1 {content: x*10000}", 0, 0],
];

test("every row counts while it is kept, whoever changes it", async () => {
  await using scene = await Scene.open();
  let names: Readonly<Record<string, unknown>> = {};
  for (const [lines, from, to] of STEPS) {
    const before = await scene.usedBy("k");
    names = Object.fromEntries(await scene.play(lines, names));
    expect([lines, (await scene.usedBy("k")) - before]).toEqual([lines, expect.any(Number)]);
    expect((await scene.usedBy("k")) - before).toBeWithin(from, to + 1);
  }
});

test("output counts against the node that sends it; deleting the task, or newer attempts, give it back", async () => {
  await using scene = await Scene.open({ quotaBytes: 100 * KIB });
  const names = Object.fromEntries(await scene.play("t = task/create {backoff_s: 0}\ntask/claim $t n1"));
  const before = await scene.usedBy("k");
  await scene.play(
    `as $k task/output $t n1 {offset: 0, data: x*30000}
    as $k task/output $t n1 {offset: 30000, data: x*30000}`,
    names,
  );
  expect((await scene.usedBy("k")) - before).toBeWithin(60_000, 62_000);
  await scene.play(
    `as $k task/output $t n1 {offset: 0, data: x*30000}
    as $k task/output $t n1 {offset: 60000, data: x*60000} -> 429 quota_exceeded allowed ${100 * KIB}
    task/output $t n1 {offset: 60000, data: x*30000}
    ${"task/fail $t n1; task/claim $t n1\ntask/output $t n1 {offset: 0, data: x*30000}\n".repeat(3)}`,
    names,
  );
  expect(await scene.usedBy("k")).toBe(before);
  await scene.play(
    "task/fail $t n1; task/claim $t n1\nas $k task/output $t n1 {offset: 0, data: x*30000}",
    names,
  );
  expect(await scene.usedBy("k")).toBeGreaterThan(before + 30_000);
  await scene.play("admin task/delete $t", names);
  expect(await scene.usedBy("k")).toBe(before);
});

/** How a task ends, with what its worker added to it. */
const ENDS = [
  "as $k task/complete $t n1",
  "as $k task/fail $t n1 {error: x*4000, retry: false}",
  "task/cancel $t",
  "admin task/delete $t",
];

describe("what a worker adds to a task of another counts for the worker until the task ends", () => {
  let scene: Scene;
  beforeAll(async () => void (scene = await Scene.open({ quotaBytes: 300 * KIB })));
  afterAll(() => scene[Symbol.asyncDispose]());

  test.each(["", "as $other "].flatMap((creator) => ENDS.map((end) => [creator, end] as const)))(
    "created by %p, %s",
    async (creator, end) => {
      const made = await scene.play(`t = ${creator}task/create {backoff_s: 0}\nas $k task/claim $t n1`);
      const names = Object.fromEntries(made);
      const [before, ofCreator] = [await scene.usedBy("k"), await scene.usedBy("other")];
      await scene.play(
        `as $k task/ask $t n1 {question: x*4000}
        as $k task/extend $t n1 {note: n, checkpoint: x*40000}
        as $k task/extend $t n1 {checkpoint: 1}
        as $k task/extend $t n1 {checkpoint: x*40000}
        as $k task/fail $t n1 {error: x*4000}
        as $k task/claim $t n1`,
        names,
      );
      expect((await scene.usedBy("k")) - before).toBeWithin(52_000, 54_000);
      expect(await scene.usedBy("other")).toBe(ofCreator);
      const files: string[] = [];
      for (;;) {
        const { status, body } = await scene.hub.post("/file/upload", form(10_000), {
          headers: { "X-Matrix-Secret": scene.keys.k.secret },
        });
        if (status !== 200) break;
        files.push(String(body["file_id"]));
      }
      await scene.play(
        `as $k task/extend $t n1 {note: n, checkpoint: x*60000} -> 429 quota_exceeded allowed ${300 * KIB}
        ${files.map((file_id) => `file/delete {file_id: ${file_id}}`).join("\n")}
        ${end}
        sweep`,
        names,
      );
      expect((await scene.usedBy("k")) - before).toBeWithin(0, 30_000); // the events
      if (creator !== "" && !end.startsWith("admin"))
        expect((await scene.usedBy("other")) - ofCreator).toBeGreaterThan(8_000);
    },
  );
});

describe("a broadcast of several commits", () => {
  const MANY = BROADCAST_STEP_NODES + 10;
  const withMany = async (options: HubOptions): Promise<Scene> => {
    const scene = await Scene.open(options);
    const nodes = Array.from({ length: MANY }, (_, i) => ({ node_id: `m${i}`, name: "m" }));
    for (let at = 0; at < MANY; at += BATCH_REQUESTS_MAX)
      await scene.hub.inBatches("node/register", nodes.slice(at, at + BATCH_REQUESTS_MAX));
    return scene;
  };

  test("counts once it is whole", async () => {
    await using scene = await withMany({});
    const before = await scene.usedBy("k");
    await scene.play(`as $k message/broadcast n1 -> receivers #${MANY + 1}`);
    expect((await scene.usedBy("k")) - before).toBeGreaterThan(100 * MANY);
  });

  once.test("that exceeds the quota reaches nobody, and is removed", async () => {
    await using scene = await withMany({ quotaBytes: 20 * KIB });
    const before = await scene.usedBy("k");
    const nobody = "GET message/history?node_id=<n1|m7> -> count 0\n";
    await scene.play(
      `as $k message/broadcast n1 -> 429 quota_exceeded allowed ${20 * KIB}
      ${nobody}tick 1m; sweep
      ${nobody}`,
    );
    expect(await scene.usedBy("k")).toBe(before);
  });
});

once.test("the files in a message of A2A count, and belong to the node", async () => {
  await using scene = await Scene.open({ quotaBytes: 200 * KIB });
  const send = async (messageId: string, files: number): Promise<Response> => {
    const raw = Buffer.alloc(1).toString("base64");
    const given = Array.from({ length: files }, (_, i) => ({ raw, filename: `${i}` }));
    const message = { messageId, role: "ROLE_USER", parts: [{ text: "do it" }, ...given] };
    return fetch(`${scene.hub.base()}/a2a/message:send`, {
      method: "POST",
      headers: {
        "A2A-Version": "1.0",
        "Content-Type": "application/a2a+json",
        Authorization: `Bearer ${scene.keys.k.secret}`,
      },
      body: JSON.stringify({ message, configuration: { returnImmediately: true } }),
    });
  };
  expect((await send("m1", 20)).status).toBe(200);
  expect(await scene.usedBy("k")).toBeWithin(20 * 4 * KIB, 150 * KIB);
  const refusal: Pick<Answer, "status"> & { body: unknown } = await send("m2", 40).then(async (response) => ({
    status: response.status,
    body: await response.json(),
  }));
  expect(refusal).toMatchObject({ status: 429, body: { error: "quota_exceeded", allowed: 200 * KIB } });
  await scene.play(
    `GET file/list -> total 20
    -> files !~"node_id":null
    admin GET key/list -> keys.2.used.tasks 1`,
  );
  expect((await send("m3", 0)).status).toBe(200); // the text alone fits
});

function form(bytes: number): FormData {
  const data = new FormData();
  data.set("file", new Blob([new Uint8Array(bytes)]), "a.bin");
  return data;
}
