/** The initial data of every fuzzed hub: nodes, tasks, messages, notes, schedules, a file, and three additional keys. */
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
  { ...FREE, keyId: "spare-0", hash: hashSecret("spare") },
  { ...FREE, keyId: "pinned", hash: hashSecret(PINNED_SECRET), variant: "B" },
];

/** Stores the keys while the hub runs, as `luxhub keys` does; the hub loads them in its next periodic work. */
export async function addKeys(dataDir: string): Promise<void> {
  const store = openSqlite(join(dataDir, "luxhub.db"), () => undefined);
  await store.transact({}, () =>
    accept(
      null,
      KEYS.map((key) => ({ kind: "key.saved", key })),
    ),
  );
  await store.close();
}

/** Posts JSON or a form. Returns the body of the answer. */
export type Post = (
  path: string,
  body: object | FormData,
  variant?: "A" | "B",
) => Promise<Readonly<Record<string, unknown>>>;

/** Seeds a hub through its API. */
export async function furnish(ids: IdPool, post: Post): Promise<void> {
  for (let i = 0; i < 4; i++) {
    const nodeId = `n${i}`;
    await post("/node/register", { node_id: nodeId, name: nodeId, ...(i === 3 ? { max_tasks: 2 } : {}) });
    ids.add("node", nodeId);
  }
  const draft = { title: "t", description: "d", lux_reward: 1.5 };
  for (const variant of ["A", "B"] as const) ids.learn(await post("/task/create", draft, variant));
  for (let i = 0; i < 8; i++) {
    const made = await post("/task/create", draft, "A");
    ids.learn(made);
    const { task_id } = made;
    const node_id = `n${i % 2}`;
    if (i < 7) await post("/task/claim", { task_id, node_id });
    if (i < 2) ids.learn(await post("/task/ask", { task_id, node_id, question: "?" }));
    if (i === 7) await post("/task/cancel", { task_id: made["task_id"] });
  }
  for (const group of ["g0", "g1"]) await post("/task/create", { ...draft, group });
  const message = { from_node: "op", to_node: BOUND_NODE, content: "c", require_ack: true };
  for (let i = 0; i < 2; i++) ids.learn(await post("/message/send", message));
  for (const key of ["k0", "k1"]) await post("/note/put", { key, text: "words", node_id: "n1" });
  await post("/lease/acquire", { name: "a", node_id: "n1" });
  for (const name of ["spare-0", "spare-1"])
    await post("/schedule/put", { name, every_s: 3_600, task: { title: "t", description: "d" } });
  const form = new FormData();
  form.set("file", new File(["hello"], "hello.txt"));
  ids.learn(await post("/file/upload", form));
}
