/** A hub with rows of every kind, what its callers see of it, and what goes on after it was moved or restored. */
import type { SQL } from "bun";
import { expect } from "bun:test";
import { EPOCHS_RAISED_BY } from "../../src/store/sqlite/change-log.ts";
import { ACK_LEASE_MS } from "../../src/domain/limits.ts";
import { list, ok, pick } from "../api/scene.ts";
import { Program, type ProgramOptions } from "../e2e/program.ts";
import type { TestHub } from "../support/hub.ts";

/** Bytes that no compression makes small, over several chunks and ending within one. */
export const LARGE = crypto.getRandomValues(new Uint8Array(60_000)).toHex().repeat(6);

export async function upload(hub: TestHub, text: string, taskId: string | null): Promise<string> {
  const form = new FormData();
  form.set("file", new File([text], "näme.bin"));
  form.set("node_id", "n1");
  if (taskId !== null) form.set("task_id", taskId);
  return String((await ok(hub.post("/file/upload", form)))["file_id"]);
}

export type Scene = {
  readonly files: string[];
  readonly open: string;
  readonly leased: readonly string[];
  /** The token of an invitation. */
  readonly invitation: string;
  readonly waiting: string;
  /** A task of n2 with CHECKPOINT. */
  readonly checkpointed: string;
  readonly idempotent: {
    readonly key: string;
    readonly body: object;
    readonly answer: Record<string, unknown>;
  };
};

const CHECKPOINT = { page: 7, odd: '漢字 \\ "' };

/** Tasks and messages in every state, nodes of both variants on and off, files, payments, stored answers, a bound key. */
export async function fill(hub: TestHub): Promise<Scene> {
  await hub.addNode("silent", { capabilities: ["coding"] }, "B");
  const lost = await hub.addTask({ title: "of one that goes" });
  await ok(hub.post("/task/assign", { task_id: lost, node_id: "silent" }));
  hub.clock.pass(91_000);
  await hub.sweep();
  expect((await hub.nodeOf("silent"))["status"]).toBe("offline");
  await hub.addNodes(["n1", "n2"]);
  const odd = 'back\\slash "quote" tab\t line\n {brace} \\N \u007f 漢字 🦀';
  const open = await hub.addTask({ title: odd.trim(), description: odd.repeat(800), lux_reward: 0.000001 });
  await hub.addTaskOf("n1", { lux_reward: 3 });
  const promising = { name: "promising", mint_per_day: 100.000001 };
  const promise = await ok(hub.admin("/key/add", promising));
  const headers = { "X-Matrix-Secret": String(promise["secret"]) };
  await ok(hub.post("/task/create", { title: "promised", description: "d", lux_reward: 7 }, { headers }));
  for (const reward of [0, 1_000_000]) {
    const done = await hub.addTaskOf("n1", { lux_reward: reward });
    await ok(hub.complete(done, "n1"));
  }
  const reviewed = await hub.addTaskOf("n1", { lux_reward: 2, review: "capability:judge" });
  await ok(hub.complete(reviewed, "n1"));
  await hub.addTask({ quorum: { results: 2, of: 5, compare: "json:/a~1b,/c" } });
  const revoked = await hub.addTaskOf("n2");
  await ok(hub.admin("/task/revoke", { task_id: revoked, reason: odd }));
  await hub.addTask({ depends_on: [revoked], group: "moved", tags: [odd.trim().slice(0, 20), "a"] });
  const checkpointed = await hub.addTaskOf("n2");
  await ok(hub.post("/task/extend", { task_id: checkpointed, node_id: "n2", checkpoint: CHECKPOINT }));
  const usage = [{ seq: 1, model: odd.trim(), input_tokens: 5, output_tokens: 7, cost_usd: 0.000001 }];
  await ok(hub.post("/task/extend", { task_id: checkpointed, node_id: "n2", usage }));
  await ok(hub.admin("/budget/set", { scope: "node", value: "n2", per: "day", cost_usd: 1_000_000 }));
  await ok(hub.admin("/hub/pause", { type: "paused", reason: odd }));
  await ok(hub.admin("/limit/set", { key: "openai", running: 5, per_minute: 50 }));
  await ok(hub.post("/limit/hold", { key: odd.trim().slice(0, 20), for_s: 3_600 }));
  const requires = { capabilities: ["cuda"], resources: { gpu: 0.5 } };
  const limited = await hub.addTask({ requires, limit_key: "openai" });
  const able = {
    node_id: "n3",
    name: "n3",
    capabilities: ["cuda"],
    resources: { gpu: 1 },
    auto_assign: false,
  };
  await ok(hub.post("/node/register", able));
  await ok(hub.post("/task/claim", { task_id: limited, node_id: "n3" }));
  await hub.addTask({ requires });
  await ok(
    hub.post("/task/output", { task_id: checkpointed, node_id: "n2", offset: 0, data: odd.repeat(500) }),
  );
  await ok(
    hub.post("/task/ask", {
      task_id: checkpointed,
      node_id: "n2",
      question: odd.trim(),
      choices: ["a", "b"],
    }),
  );
  const task = { title: "each night", description: odd };
  await ok(
    hub.post("/schedule/put", {
      name: "nightly",
      cron: "0 3 * * *",
      timezone: "Europe/Berlin",
      paused: true,
      task,
    }),
  );
  await ok(hub.admin("/webhook/put", { name: "ci", url: "https://receiver.test/ä", group: "g" }));
  const { secret } = await ok(hub.admin("/key/add", { name: "bound", node_id: "n2" }));
  const bound = { headers: { "X-Matrix-Secret": String(secret) } };
  await ok(hub.post("/task/create", { title: "of a bound key", description: odd }, bound)); // counts against a quota
  await ok(hub.post("/task/extend", { task_id: checkpointed, node_id: "n2", note: odd.trim() }, bound)); // that too
  const { line } = await ok(hub.admin("/invitation/create", { node_id: "n9" }));
  const invitation = String(line).split("#join.").at(-1) ?? "";
  const deleted = await hub.addTask();
  await ok(hub.admin("/task/delete", { task_id: deleted }));
  await ok(hub.post("/signin", { node_id: "n2" }));

  const leased = [
    await hub.send("n1", "n2", { require_ack: true, content: "1" }),
    await hub.send("n1", "n2", { require_ack: true, content: "2" }),
  ];
  const acked = await hub.send("n1", "n2", { require_ack: true, content: "3" });
  expect(await hub.receive("n2")).toHaveLength(3);
  await ok(hub.post("/message/ack", { node_id: "n2", message_id: acked }));
  const waiting = await hub.send("n2", "n1", { content: odd.repeat(2_000) });
  await ok(hub.post("/message/broadcast", { from_node: "n2", content: odd }));
  await ok(hub.post("/note/put", { key: odd.trim(), text: odd, node_id: "n2" }, bound));
  await ok(
    hub.post("/lease/acquire", { name: odd.trim().replaceAll("\\", ""), node_id: "n1", ttl_s: 86_400 }),
  );
  const forTask = { name: "src/**", node_id: "n2", task_id: checkpointed, ttl_s: 86_400, shared: true };
  await ok(hub.post("/lease/acquire", forTask));
  const body = { title: "only once", description: "d" };
  const key = "move-1";
  const answer = await ok(hub.post("/task/create", body, { headers: { "Idempotency-Key": key } }));
  const files = [
    await upload(hub, "small", open),
    await upload(hub, "", null),
    await upload(hub, LARGE, null),
  ];
  return { files, open, leased, invitation, waiting, checkpointed, idempotent: { key, body, answer } };
}

/** What callers see, in both variants, but for the hub's own starts. */
export async function seen(hub: TestHub, files: readonly string[]): Promise<unknown> {
  const paths = [
    "/node/list",
    ...["n1", "silent"].map((nodeId) => `/node/${nodeId}`),
    "/task/list?per_page=50",
    ...["open", "assigned", "completed"].map((status) => `/task/list?status=${status}`),
    "/task/stats",
    "/questions",
    "/usage",
    "/schedule/list",
    "/task/pull?node_id=n1",
    ...["n1", "n2", "big"].map((nodeId) => `/lux/ledger?node_id=${nodeId}`),
    "/lux/entries",
    "/lux/head",
    ...["n1", "n2", "silent"].map((nodeId) => `/message/history?node_id=${nodeId}`),
    "/file/list?per_page=50",
    "/note/search?q=quote",
    "/note/list",
    "/events?since=0&limit=1000",
  ];
  const answers: Record<string, unknown> = {};
  for (const variant of ["A", "B"] as const) {
    for (const path of paths) {
      const { status, body } = await hub.get(path, { variant });
      const { request_id: _id, cursor: _cursor, transport: _engine, ...said } = body;
      const events = Array.isArray(body["events"])
        ? list(body, "events").filter(({ kind }) => kind !== "hub.started")
        : [];
      answers[`${variant} ${path}`] = { status, ...said, events };
    }
  }
  for (const taskId of pick(await ok(hub.get("/task/list?per_page=50")), "tasks", "task_id")) {
    const { body } = await hub.get(`/task/${String(taskId)}/output`);
    answers[`output of ${String(taskId)}`] = body["data"];
  }
  for (const fileId of files) {
    const response = await fetch(`${hub.base()}/api/v1/file/download/${fileId}`);
    answers[fileId] = [response.status, Bun.hash(await response.bytes())];
  }
  return answers;
}

/** What was begun before the move, or `restores` restores, is ended after it. */
export async function goesOn(
  hub: TestHub,
  scene: Scene,
  cursor: number,
  key: string,
  restores = 0,
): Promise<void> {
  const again = { name: "src/**", node_id: "n2", task_id: scene.checkpointed, shared: true };
  expect((await ok(hub.post("/lease/acquire", again)))["lease"]).toMatchObject({ fencing: 2 });
  const next = await ok(hub.post("/lease/acquire", { name: "other", node_id: "n1" }));
  expect(next["lease"]).toMatchObject({ fencing: 3 + restores * EPOCHS_RAISED_BY });
  const events = await ok(hub.get(`/events?since=${cursor}&limit=1000`));
  expect(pick(events, "events", "id")).toEqual([cursor + 1]); // the hub's start
  const joined = { token: scene.invitation, key_hash: "0e".repeat(32) };
  expect(await ok(hub.post("/join", joined))).toMatchObject({ node_id: "n9" });
  const { key: once, body, answer } = scene.idempotent;
  expect(await ok(hub.post("/task/create", body, { headers: { "Idempotency-Key": once } }))).toEqual(answer);
  const waiting = await hub.receive("n1");
  expect(waiting.map(({ id }) => id)).toContain(scene.waiting);
  expect(waiting).toHaveLength(2);
  await ok(hub.post("/message/ack", { node_id: "n2", message_id: scene.leased[0] }));
  expect((await hub.receive("n2")).map(({ type }) => type)).toHaveLength(0);
  hub.clock.pass(ACK_LEASE_MS + 1_000);
  await hub.sweep();
  expect((await hub.receive("n2")).map(({ id }) => id)).toEqual([scene.leased[1]]);
  expect(await ok(hub.post("/signin", { node_id: "n2" }))).toMatchObject({ already_signed_in: true });
  await ok(hub.post("/task/claim", { task_id: scene.open, node_id: "n2" }));
  await ok(hub.complete(scene.open, "n2"));
  const mine = { task_id: scene.checkpointed, node_id: "n2" };
  await ok(hub.post("/task/release", mine));
  expect(await ok(hub.post("/task/claim", mine))).toMatchObject({
    context: { checkpoint: { data: CHECKPOINT } },
  });
  for (const [secret, status] of [
    [key, 200],
    ["wrong", 401],
  ] as const) {
    const headers = { "X-Matrix-Secret": secret };
    expect((await hub.get("/message/history?node_id=n1", { headers })).status).toBe(status);
  }
}

/** Counts those who create the tables, from the beginning to the end of their transaction. */
export const WRITES = `SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND granted
  AND classid = 1819637861 AND objid = current_schema()::regnamespace::oid`;

/** The tables in the schema. */
export async function tablesIn(sql: SQL): Promise<readonly string[]> {
  const rows: readonly { name: string }[] =
    await sql`SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`;
  return rows.map(({ name }) => name);
}

type Killed = ProgramOptions & {
  /** Whether the program has begun to write. */
  readonly isUnderWay: () => Promise<boolean> | boolean;
  /** Looks at what a killed program leaves. */
  readonly look: () => Promise<unknown>;
  /** Removes what a program leaves that ended before it was killed, as it may on a busy machine. */
  readonly undo: () => Promise<void> | void;
};

/** Kills three runs of the program, each at some moment after it has begun to write. */
export async function killOften(
  args: readonly string[],
  { isUnderWay, look, undo, ...options }: Killed,
): Promise<void> {
  for (let killed = 0; killed < 3;) {
    const program = new Program(args, options);
    while (program.child.exitCode === null && !(await isUnderWay())) await Bun.sleep(2);
    await Bun.sleep(killed * 40 * Math.random()); // at any moment: nothing is waited for
    program.child.kill("SIGKILL");
    if ((await program.ended) !== null) {
      await undo();
      continue;
    }
    killed++;
    await look();
  }
}
