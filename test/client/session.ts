/**
 * A session over the whole client through a proxy that injects faults, the same on Bun and, from the bundle, on Node.
 * Everything must happen once, as if there were no faults.
 */
import assert from "node:assert/strict";
import type * as Client from "../../src/client/index.ts";

export type Hub = { readonly url: string; readonly secret: string; readonly adminKey: string };

const RESULT = { problem: "p", improvement: "i", lesson: "l" };
const QUICK = { firstPauseMs: 5, maxPauseMs: 50 };

export async function session(client: typeof Client, { url, ...keys }: Hub): Promise<void> {
  const faults: Error[] = [];
  const onRetry = (fault: Error): void => void faults.push(fault);
  const hub = new client.LuxHub({ url, ...keys, retry: QUICK, onRetry });
  const end = new AbortController();
  const { signal } = end;

  // Followed from the beginning, and compared with the log at the end.
  const followed: Client.Event[] = [];
  const ended: Client.Event[] = [];
  const streamed: Client.StreamItem[] = [];
  const follow = async <T>(items: AsyncGenerator<T>, into: T[]): Promise<void> => {
    await assert.rejects(
      async () => {
        for await (const item of items) into.push(item);
      },
      { name: "AbortError" },
    );
  };
  const following = [
    follow(hub.events({ since: 0, signal }), followed),
    follow(hub.events({ since: 0, kinds: ["task.completed", "task.failed"], signal }), ended),
  ];

  await hub.nodes.register({ node_id: "w", name: "W", capabilities: ["a", "b"] });
  assert.equal((await hub.nodes.get({ node_id: "w" })).node.capabilities, "a,b");
  const cursor = (await hub.call("events", { limit: 1 })).cursor;
  following.push(follow(hub.stream("w", { lastEventId: cursor, signal }), streamed));

  // Each is done once, however often it was sent.
  const tasks: string[] = [];
  for (let i = 0; i < 20; i++) {
    const { task_id } = await hub.tasks.create({ title: `t${i}`, description: "d", lux_reward: 1 });
    tasks.push(task_id);
  }
  assert.equal((await hub.tasks.stats()).total, tasks.length);
  for (const task_id of tasks) {
    const { lease } = await hub.tasks.claim({ task_id, node_id: "w" });
    const held = { task_id, node_id: "w", epoch: lease.epoch };
    assert.equal((await hub.tasks.complete({ ...held, result: { ...RESULT, n: 1 } })).lux_paid, 1);
  }
  assert.equal((await hub.nodes.get({ node_id: "w" })).node.lux_balance, tasks.length);
  assert.equal((await hub.lux.ledger({ node_id: "w", per_page: 50 })).total, tasks.length);

  // A worker takes what is created while it waits, and leaves when it is told to.
  const stop = new AbortController();
  const work: string[] = [];
  const working = hub.worker(
    "worker",
    ({ task_id }) => {
      if (work.push(task_id) === 5) stop.abort();
      return RESULT;
    },
    { concurrency: 2, signal: stop.signal },
  );
  const given: string[] = [];
  for (let i = 0; i < 5; i++) given.push((await hub.tasks.create({ title: "w", description: "d" })).task_id);
  await working;
  assert.deepEqual(work.sort(), given.sort());
  const waited = await Promise.all(given.map((task_id) => hub.tasks.get({ task_id, wait: 10 })));
  assert.deepEqual([...new Set(waited.map(({ task }) => task.status))], ["completed"]);
  assert.equal((await hub.nodes.get({ node_id: "worker" })).node.status, "offline");

  // Messages: a receive waits through the faults, and none is taken twice or lost.
  const received: string[] = [];
  const receiving = (async () => {
    while (received.length < 10) {
      const { messages } = await hub.messages.receive({
        node_id: "w",
        count: 3,
        blocking: true,
        timeout: 20,
      });
      received.push(...messages.map(({ content }) => content));
    }
  })();
  for (let i = 0; i < 10; i++) await hub.messages.send({ from_node: "s", to_node: "w", content: `m${i}` });
  await receiving;
  assert.deepEqual(
    received,
    Array.from({ length: 10 }, (_, i) => `m${i}`),
  );

  // Notes and leases.
  await hub.notes.put({ key: "plan/a", text: "Ünï", node_id: "w", if_version: 0 });
  const later = hub.notes.put({ key: "plan/a", text: "x", if_version: 0 });
  await assert.rejects(later, (error) => {
    assert(error instanceof client.LuxHubError);
    assert.deepEqual([error.code, error.problem["version"]], ["note_version_conflict", 1]);
    return true;
  });
  assert.equal((await hub.notes.get({ key: "plan/a" })).note.text, "Ünï");
  assert.equal((await hub.notes.list({ prefix: "plan/" })).notes[0]?.version, 1);
  assert.equal((await hub.notes.search({ q: "ün" })).notes[0]?.excerpt, "Ünï");
  await hub.notes.delete({ key: "plan/a", if_version: 1 });
  const { lease } = await hub.leases.acquire({ name: "src/**", node_id: "w", ttl_s: 60 });
  const { name, fencing } = lease;
  assert.equal((await hub.leases.renew({ name, fencing, node_id: "w" })).lease.fencing, fencing);
  assert.equal((await hub.leases.list({ node_id: "w" })).leases.length, 1);
  assert.equal((await hub.leases.release({ name, fencing, node_id: "w" })).released, 1);

  // Files, from memory and from a stream that is opened for each attempt.
  const text = "Ünï\r\n".repeat(10_000);
  const streamOf = (): ReadableStream<Uint8Array> => new Blob([text]).stream();
  for (const content of [text, new Blob([text]), new TextEncoder().encode(text), streamOf]) {
    const about = { name: 'a "b".txt', type: "text/plain", metadata: { task_id: tasks[0], n: 1 } };
    const file = await hub.files.upload(content, about);
    assert.equal(file.task_id, tasks[0]);
    assert.equal(file.name, 'a "b".txt');
    const { file_id } = file;
    assert.equal(await (await hub.files.download({ file_id })).text(), text);
    assert.equal(await (await hub.files.download({ file_id, range: "bytes=0-2" })).text(), "Ün");
    await hub.files.delete({ file_id });
  }
  assert.equal((await hub.files.list()).total, 0);

  // A task with an input, and one that depends on it.
  const { file_id } = await hub.files.upload(text, { name: "input.txt" });
  const draft = { title: "Read it", description: "All of it" };
  const reading = await hub.tasks.create({ ...draft, files: [file_id] });
  assert.deepEqual([reading.task.inputs, reading.task.outputs], [[file_id], []]);
  const after = await hub.tasks.create({ ...draft, depends_on: [reading.task_id] });
  const { task: waiting } = await hub.tasks.get({ task_id: after.task_id });
  assert.deepEqual(waiting.unmet, { count: 1, task_ids: [reading.task_id] });
  await hub.tasks.cancel({ task_id: reading.task_id });
  const again = await hub.tasks.retry({ task_id: reading.task_id, with_dependents: true });
  assert.deepEqual(again.dependents, { opened: 1, left: 0 });
  await hub.tasks.cancel({ task_id: reading.task_id });
  const { tasks: rows } = await hub.tasks.summaries({
    failure_kind: "cancelled",
    status: "failed",
    order: "updated",
  });
  const { count, exact } = await hub.tasks.count({
    failure_kind: "cancelled",
    since: reading.task.created_at,
  });
  if (rows[0]?.task_id !== reading.task_id || "description" in rows[0] || count < 1 || !exact)
    throw new Error("the summaries and the count are wrong");
  await hub.files.delete({ file_id });

  // Refusals are not repeated, and say what is wrong.
  await assert.rejects(hub.tasks.get({ task_id: "none" }), (error) => {
    assert(error instanceof client.LuxHubError);
    assert.deepEqual([error.status, error.code, error.errors], [404, "task_not_found", []]);
    assert.match(error.detail, /none/);
    assert(error.requestId);
    return true;
  });
  await assert.rejects(hub.tasks.create({ title: "", description: "" }), (error) => {
    assert(error instanceof client.LuxHubError);
    assert.deepEqual(
      error.errors.map(({ path }) => path),
      ["title", "description"],
    );
    return true;
  });
  const { task_id } = await hub.tasks.create({ title: "To delete", description: "d" });
  await hub.tasks.delete({ task_id });

  // A network fault that lasts, and a signal.
  const away = new client.LuxHub({ url: "http://127.0.0.1:1", retry: { ...QUICK, forMs: 20 } });
  await assert.rejects(away.status(), client.HubUnreachable);
  const soon = AbortSignal.timeout(20);
  await assert.rejects(away.status({}, { signal: soon, retry: { forMs: 60_000 } }), { name: "TimeoutError" });
  await assert.rejects(hub.tasks.get({ task_id: tasks[0] ?? "", wait: 0 }, { signal: AbortSignal.abort() }));

  // No event was missed, and none came twice.
  const { events } = await hub.call("events", { since: 0, limit: 1_000 });
  const idsOf = (some: readonly { readonly id: number }[]): number[] => some.map(({ id }) => id);
  const last = events.findLast(({ kind }) => kind === "task.deleted")?.id ?? 0;
  while (followed.at(-1)?.id !== last) await pause();
  assert.deepEqual(idsOf(followed), idsOf(events));
  const ends = events.filter(({ kind }) => kind === "task.completed" || kind === "task.failed");
  while (ended.length < ends.length) await pause();
  assert.deepEqual(idsOf(ended), idsOf(ends));
  const own = events.filter(
    ({ id, kind, node_id }) => id > cursor && node_id === "w" && /^task|^message.sent/.test(kind),
  );
  while (streamed.length < own.length) await pause();
  assert.deepEqual(idsOf(streamed), idsOf(own));
  assert.equal(streamed.filter(({ event }) => event === "message").length, 10);

  end.abort();
  await Promise.all(following);
  assert(faults.some((fault) => fault instanceof client.HubUnreachable));
  assert(faults.some((fault) => fault instanceof client.LuxHubError && fault.status === 503));
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}
