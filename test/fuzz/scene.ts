/** The initial data of every fuzzed hub, so that each endpoint can succeed: some of everything that requests refer to. */
import { join } from "node:path";
import { accept } from "../../src/domain/decision.ts";
import type { KeyRecord } from "../../src/domain/model.ts";
import { hashSecret } from "../../src/service/keys.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { IdPool } from "./id-pool.ts";
import { BOUND_NODE, BOUND_SECRET, PINNED_SECRET } from "./sent.ts";

const FREE = {
  role: "full",
  variant: null,
  nodeId: null,
  mintMicro: null,
  createdAt: 0,
  expiresAt: null,
  revokedAt: null,
} as const;
const KEYS: readonly KeyRecord[] = [
  { ...FREE, keyId: "bound", hash: hashSecret(BOUND_SECRET), nodeId: BOUND_NODE },
  ...[0, 1, 2].map((n) => ({ ...FREE, keyId: `spare-${n}`, hash: hashSecret(`spare-${n}`) })),
  { ...FREE, keyId: "pinned", hash: hashSecret(PINNED_SECRET), variant: "B" },
];

/** Its events go nowhere until it is resumed; then it fails, because no loopback address is called. */
const WEBHOOK = {
  url: "https://[::1]:1/a/",
  format: "luxhub",
  filter: { kinds: [], taskId: null, nodeId: null, creatorNode: null, group: null },
  push: null,
  cursor: 0,
  state: "suspended",
  attempts: 20,
  failingSince: 0,
  nextAt: null,
  lastError: "it was down",
  deliveredAt: null,
  webhookId: "w",
  secret: "fuzz-webhook-secret",
  revision: 1,
  createdAt: 0,
  updatedAt: 0,
} as const;

/**
 * Stores the keys while the hub runs, as `luxhub keys` does, and webhooks; the hub loads them in its next periodic
 * work.
 */
export async function addKeys(dataDir: string): Promise<void> {
  const store = openSqlite(join(dataDir, "luxhub.db"), () => undefined);
  await store.transact({}, () =>
    accept(null, [
      ...KEYS.map((key) => ({ kind: "key.saved", key }) as const),
      ...[0, 1, 2, 3].map(
        (n) => ({ kind: "webhook.saved", webhook: { ...WEBHOOK, name: `spare-${n}` } }) as const,
      ),
    ]),
  );
  await store.close();
}

export type Post = (
  path: string,
  body: object | FormData,
  variant?: "A" | "B",
) => Promise<Readonly<Record<string, unknown>>>;

const DRAFT = { title: "t", description: "d", lux_reward: 1.5 };
const USED = { seq: 1, model: "m", input_tokens: 1, output_tokens: 1, cost_usd: 0.5 };
const TASKS = 8;
/** Most of the work is of one node, so that a request often names the right one. */
const BUSY_NODE = "n1";
const NODES = ["n0", "n2", "n3", "n0", "n2", ...new Array<string>(5).fill(BUSY_NODE)];

/** What needs no id of the others. */
const OTHERS: readonly (readonly [path: string, body: object])[] = [
  ...["g0", "g1"].map((group) => ["task/create", { ...DRAFT, group }] as const),
  ...["k0", "k1"].map((key) => ["note/put", { key, text: "words", node_id: BUSY_NODE }] as const),
  ...["a", "a/*"].map(
    (name) => ["lease/acquire", { name, node_id: BUSY_NODE, shared: name !== "a" }] as const,
  ),
  ...["spare-0", "spare-1"].map(
    (name) => ["schedule/put", { name, every_s: 3_600, task: { title: "t", description: "d" } }] as const,
  ),
  ...["k0", "k1"].map((key) => ["limit/set", { key, running: 5, per_minute: 100 }] as const),
  ...["k0", "k1"].flatMap((word) => [
    ["hub/pause", { type: word }] as const,
    ["hub/pause", { limit_key: word }] as const,
  ]),
  ["hub/pause", { creator_node: "n3" }],
  ...["hub", "creator", "type"].flatMap((scope) =>
    ["day", "month", "total"].map(
      (per) => ["budget/set", { scope, per, tokens: 1_000_000, on_limit: "warn" }] as const,
    ),
  ),
];

export async function furnish(ids: IdPool, post: Post): Promise<void> {
  const nodes = [...new Set(NODES)].map((node_id) => {
    const room = node_id === "n3" ? { max_tasks: 2 } : {};
    return ["node/register", { node_id, name: node_id, resources: { gpu: 2 }, ...room }] as const;
  });
  const requests = [...nodes, ...OTHERS].map(([path, body]) => ({ path, body }));
  await post("/batch", { requests });
  for (const nodeId of NODES) ids.add("node", nodeId);
  for (const to_node of [BOUND_NODE, BUSY_NODE, BUSY_NODE])
    ids.learn(await post("/message/send", { from_node: "op", to_node, content: "c", require_ack: true }));
  for (const variant of ["A", "B"] as const) ids.learn(await post("/task/create", DRAFT, variant));
  for (let i = 0; i < TASKS; i++) await addTask(i, ids, post);
  for (let i = 0; i < 2; i++) ids.learn(await post("/invitation/create", { node_id: `new-${i}` }));
  const form = new FormData();
  form.set("file", new File(["hello"], "hello.txt"));
  ids.learn(await post("/file/upload", form));
}

/** Of eight, two wait for a review, one has failed, and the others are done by a node, one of them with questions. */
async function addTask(i: number, ids: IdPool, post: Post): Promise<void> {
  const isReviewed = i === 5 || i === 6;
  const made = await post("/task/create", { ...DRAFT, ...(isReviewed && { review: "creator" }) }, "A");
  ids.learn(made);
  const { task_id } = made;
  if (i === 7) {
    await post("/task/cancel", { task_id });
    return;
  }
  const node_id = i === 0 ? BOUND_NODE : BUSY_NODE;
  await post("/task/claim", { task_id, node_id });
  if (i < 2) ids.learn(await post("/task/ask", { task_id, node_id, question: "?" }));
  if (i === 2) await post("/task/output", { task_id, node_id, offset: 0, data: "so far" });
  if (i < 4) await post("/task/extend", { task_id, node_id, usage: [USED] });
  const result = { problem: "p", improvement: "i", lesson: "l" };
  if (isReviewed) await post("/task/complete", { task_id, node_id, result });
}
