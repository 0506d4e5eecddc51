/** A world of rows that looks random and is the same in every run, and the changes that write it. */
import type { Change } from "../../src/domain/change.ts";
import { EVENT_KINDS, type LoggedEvent } from "../../src/domain/event.ts";
import { BALANCE_MAX_MICRO } from "../../src/domain/limits.ts";
import { GENESIS_HASH, hashOfEntry } from "../../src/domain/lux.ts";
import type {
  DeliveryState,
  FileRecord,
  KeyRecord,
  Message,
  Node,
  Priority,
  Task,
  TaskOrigin,
} from "../../src/domain/model.ts";
import { saved } from "../../src/domain/node.ts";
import type { ChainedEntry } from "../../src/store/sql/lux.ts";
import * as sqlQuery from "../../src/store/sql/query.ts";
import type { Query } from "../../src/store/store.ts";
import { message, node, tally, task } from "../domain/samples.ts";

/** Numbers that look random and are the same at every run. */
export function dice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % sides;
  };
}

export type Placed = { readonly message: Message; readonly seq: number };
export type Got = {
  messageId: string;
  toNode: string;
  state: DeliveryState;
  deliveries: number;
  leaseUntil: number | null;
};

export type Rows = {
  readonly nodes: readonly Node[];
  /** In the order of creation. */
  readonly tasks: readonly Task[];
  readonly ledger: readonly ChainedEntry[];
  readonly files: readonly FileRecord[];
  readonly events: readonly LoggedEvent[];
  readonly keys: readonly KeyRecord[];
  readonly messages: readonly Placed[];
  readonly deliveries: readonly Got[];
  readonly changes: readonly Change[];
};

export const TYPES = ["", "x", "y", "z", "x,y"] as const;
export const CAPABILITIES = [[], ["x"], ["x", "y"], ["xy"], ["z", "x"]] as const;

export function makeNodes(roll: (sides: number) => number): { nodes: Node[]; changes: Change[] } {
  const changes: Change[] = [];
  const nodes = Array.from({ length: 14 }, (_, i) => {
    const one = node(`n${String(i).padStart(2, "0")}`, {
      name: `Näme ${i}`,
      host: i % 2 ? `host${i}` : null,
      port: i % 2 ? 1000 + i : null,
      capabilities: CAPABILITIES[i % CAPABILITIES.length] ?? [],
      variant: i % 3 ? "B" : "A",
      maxTasks: i % 4 === 3 ? 2 : null,
      autoAssign: i % 7 !== 6,
      draining: i === 8,
      online: i % 5 !== 4,
      registeredAt: 100 + i,
      lastHeartbeatAt: 200 + i,
      leaseUntil: 1_000 + ((i * 7) % 14),
      tasksAssigned: roll(4),
      tasksCompleted: i < 3 ? 0 : 20 + (i % 4),
      luxEarnedMicro: i === 5 ? BALANCE_MAX_MICRO : BigInt(i * 1_000),
      idleSince: 300 + roll(5),
    });
    // Registering does not write what the ledger and the tasks say of it.
    const fresh = { ...one, tasksAssigned: 0, tasksCompleted: 0, luxEarnedMicro: 0n, idleSince: 0 };
    changes.push(...saved(fresh));
    // A tally carries a number: a sum past 2^53 takes several.
    const parts = one.luxEarnedMicro > 2n ** 53n ? 9_000 : 1;
    for (let part = 0; part < parts; part++)
      changes.push(
        tally({
          nodeId: one.nodeId,
          assigned: part === 0 ? one.tasksAssigned : 0,
          completed: part === 0 ? one.tasksCompleted : 0,
          luxEarnedMicro: Number(one.luxEarnedMicro / BigInt(parts)),
          idleSince: one.idleSince,
        }),
      );
    if (one.draining) changes.push({ kind: "node.drained", nodeId: one.nodeId, draining: true });
    if (!one.online) changes.push({ kind: "node.offline", nodeId: one.nodeId });
    return one;
  });
  return { nodes, changes };
}

export type Tasks = { tasks: Task[]; changes: Change[] };

/** Some were created through A2A, by two callers. */
export function originOf({ seq }: Task): TaskOrigin | null {
  if (seq % 6 > 1) return null;
  return { caller: `key a${seq % 6} /a2a`, contextId: `"c" ${seq % 4}`, messageId: `wö\0${seq}` };
}

export function makeTasks(roll: (sides: number) => number): Tasks {
  const changes: Change[] = [];
  const tasks = Array.from({ length: 240 }, (_, i) => {
    const status = (["open", "open", "assigned", "completed"] as const)[roll(4)] ?? "open";
    const holder = status === "open" ? null : `n${String(roll(6)).padStart(2, "0")}`;
    const created = task(`t${String((i * 97) % 1_000).padStart(3, "0")}-${i}`, {
      seq: i + 1,
      title: `Title ${i}`,
      taskType: TYPES[roll(TYPES.length)] ?? "",
      priority: ([0, 1, 2, 5] as const satisfies readonly Priority[])[roll(4)] ?? 1,
      creatorNode: i % 7 ? null : "creator",
      luxRewardMicro: i % 3 ? 0 : 1_000_000_000_000_000 - i,
      balanced: roll(2) === 1,
      maxAttempts: i % 4 ? null : i % 100,
      backoffMs: i * 10,
      timeoutMs: i % 3 ? null : 604_800_000 + i,
      maxRunMs: i % 5 ? null : 2_592_000_000 + i,
      expiresAt: i % 6 ? null : 10 ** 12 + i,
      dependsOn: i % 5 ? [] : ["a", "b"].slice(i % 2),
      // Some wait for their time, some for other tasks.
      ...(status === "open" && i % 9 === 0
        ? { scheduled: true, notBefore: i % 2 ? 20_000 + i : null, unmet: i % 2 ? 0 : 2 }
        : {}),
      createdAt: 5_000 + i,
      updatedAt: 5_000 + i,
    });
    const origin = originOf(created);
    changes.push({ kind: "task.created", task: created });
    if (origin) changes.push({ kind: "task.sent", taskId: created.taskId, origin });
    changes.push({ kind: "tasks.tallied", open: 1, assigned: 0, completed: 0, failed: 0 });
    const sent: Task = { ...created, hasFeatures: origin !== null };
    if (status === "open" && roll(3) > 0) return sent;
    const moved: Task = {
      ...sent,
      status: status === "open" ? "open" : "assigned",
      assignedNode: holder,
      revokedFrom: status === "open" ? `n${String(roll(4)).padStart(2, "0")}` : null,
      attempts: roll(3),
      failures: i % 3,
      restarts: i % 4,
      epoch: i,
      leaseUntil: status !== "open" && (created.timeoutMs ?? created.maxRunMs) !== null ? 30_000 + i : null,
      runUntil: status !== "open" && created.maxRunMs !== null ? 30_000 + 2 * i : null,
      startedAt: i % 2 ? 5_500 + i : null,
      progress: i % 3 ? null : `half of ${i}`,
      failure: i % 4 ? null : { kind: "failed", message: `wö "${i}"`, nodeId: "n00", at: 5_600 + i },
      updatedAt: 6_000 + i,
    };
    changes.push({ kind: "task.moved", task: moved });
    if (status !== "open")
      changes.push({ kind: "tasks.tallied", open: -1, assigned: 1, completed: 0, failed: 0 });
    if (status !== "completed") return moved;
    const extra = i % 2 ? `{"ł":${i}.00,"n":12345678901234567890}` : null;
    const result = { problem: `p${i}`, improvement: "i\n", lesson: "ł", extra };
    const resultVerified = i % 3 === 0;
    const end = { status: "completed", result, resultVerified, leaseUntil: null } as const;
    const done: Task = { ...moved, ...end, updatedAt: 7_000 + i };
    changes.push({ kind: "task.moved", task: done });
    changes.push({ kind: "tasks.tallied", open: 0, assigned: -1, completed: 1, failed: 0 });
    return done;
  });
  return { tasks, changes };
}

export const DAY = 86_400_000;

export function makeLedger(): { ledger: ChainedEntry[]; changes: Change[] } {
  const ledger: ChainedEntry[] = [];
  const balances = new Map<string, bigint>();
  const counts = new Map<string, number>();
  for (let i = 0; i < 220; i++) {
    const nodeId = i < 90 ? `n0${i % 3}` : "n00"; // who has more than one mark
    const signin = i % 4 === 0;
    const amountMicro = signin ? 10_000_000 : 900_000_000_000_000 + i;
    const balanceMicro = (balances.get(nodeId) ?? (i % 3 === 0 ? 2n ** 60n : 0n)) + BigInt(amountMicro);
    balances.set(nodeId, balanceMicro);
    const n = (counts.get(nodeId) ?? 0) + 1;
    counts.set(nodeId, n);
    // Some out of the order of time: a clock that was set back.
    const at = DAY * (i === 60 ? 500 : i) + 5;
    const taskId = signin ? null : `paid${i}`;
    const what = { id: `e${i}`, amountMicro, kind: signin ? "signin" : "reward", taskId, at } as const;
    const hashed = { ...what, seq: i + 1, from: "treasury", to: `node:${nodeId}` } as const;
    const prevHash = ledger.at(-1)?.hash ?? GENESIS_HASH;
    ledger.push({ ...hashed, nodeId, n, balanceMicro, prevHash, hash: hashOfEntry(hashed, prevHash) });
  }
  return { ledger, changes: ledger.map((entry) => ({ kind: "lux.entered", entry })) };
}

export function makeMail(roll: (sides: number) => number): Pick<Rows, "messages" | "deliveries" | "changes"> {
  const messages: Placed[] = [];
  const deliveries: Got[] = [];
  const changes: Change[] = [];
  const states = ["waiting", "waiting", "leased", "gone", "acked", "parked"] as const;
  for (let i = 0; i < 150; i++) {
    const broadcast = i % 5 === 0;
    const toNode = broadcast ? null : `n0${roll(4)}`;
    const one = message(`m${(i * 37) % 1_000}-${i}`, {
      fromNode: `n0${roll(4)}`,
      toNode,
      type: broadcast ? "alert" : "task",
      content: `Inhalt ${i} 🚀`,
      requireAck: i % 2 === 0,
      replyTo: i % 4 === 3 ? (messages[i - 3]?.message.messageId ?? null) : null,
      thread: i % 7 === 0 ? null : i % 4 === 3 ? (messages[0]?.message.messageId ?? null) : "release",
      verified: i % 3 === 0,
      sentAt: 10_000 + i,
    });
    messages.push({ message: one, seq: i + 1 });
    changes.push({ kind: "message.stored", message: one });
    const receivers = broadcast
      ? ["n00", "n01", "n02", "n03"].filter((id) => id !== one.fromNode)
      : [toNode ?? ""];
    for (const receiver of receivers) {
      const state = states[roll(states.length)] ?? "waiting";
      const deliveries_ = state === "waiting" ? roll(2) : 1 + roll(3);
      const leaseUntil = state === "leased" ? 2_000 + ((i * 7) % 150) : null;
      deliveries.push({
        messageId: one.messageId,
        toNode: receiver,
        state,
        deliveries: deliveries_,
        leaseUntil,
      });
      changes.push(
        broadcast
          ? { kind: "deliveries.queued", messageId: one.messageId, toNodes: [receiver] }
          : { kind: "delivery.queued", messageId: one.messageId, toNode: receiver },
      );
      const moved = { messageId: one.messageId, seq: i + 1, toNode: receiver, state, leaseUntil };
      changes.push({ kind: "delivery.moved", ...moved, deliveries: deliveries_ });
    }
  }
  return { messages, deliveries, changes };
}

export function makeRows(): Rows {
  const roll = dice(7);
  const { nodes: barest, changes: ofNodes } = makeNodes(roll);
  const { tasks: bare, changes: ofTasks } = makeTasks(roll);
  const { ledger, changes: ofLedger } = makeLedger();
  const nodes = barest.map((one) => {
    const own = ledger.filter(({ nodeId }) => nodeId === one.nodeId);
    const balanceMicro = own.reduce((sum, { amountMicro }) => sum + BigInt(amountMicro), 0n);
    for (const { amountMicro } of own)
      ofNodes.push(
        tally({ nodeId: one.nodeId, idleSince: one.idleSince, entries: 1, balanceMicro: amountMicro }),
      );
    return { ...one, entries: own.length, balanceMicro };
  });
  const { messages, deliveries, changes: ofMail } = makeMail(roll);
  const files = Array.from({ length: 25 }, (_, i): FileRecord => ({
    fileId: `f${(i * 17) % 100}-${i}`,
    name: `file ${i}`,
    sizeBytes: i === 3 ? 2 ** 40 : i,
    sha256: "ab".repeat(32),
    contentType: "text/plain",
    metadata: `{"i":${i}}`,
    nodeId: i % 2 ? null : "n01",
    taskId: i % 3 ? null : (bare[i % 6]?.taskId ?? null),
    attached: i % 3 || !bare[i % 6] ? null : i % 2 ? "output" : "input",
    uploadedAt: 9_000 + i,
    keptBytes: 0,
  }));
  const tasks = bare.map((one) => {
    const own = files.filter((file) => file.taskId === one.taskId);
    const outputs = own.filter((file) => file.attached === "output");
    const idsOf = (some: readonly FileRecord[]) => some.map((file) => file.fileId);
    return { ...one, files: idsOf(own), outputs: idsOf(outputs) };
  });
  const events = Array.from({ length: 400 }, (_, i): LoggedEvent => ({
    id: i + 1,
    kind: EVENT_KINDS[roll(EVENT_KINDS.length)] ?? "hub.started",
    at: 8_000 + i,
    nodeId: roll(3) ? `n0${roll(4)}` : null,
    taskId: roll(2) ? `t${i}` : null,
    data: { i, text: "ß\"'", yes: true, none: null, from_node: `n0${i % 4}` },
    verified: i % 5 === 0,
  }));
  const keys = Array.from({ length: 5 }, (_, i): KeyRecord => ({
    keyId: `k${i}`,
    role: i % 2 ? "admin" : i % 3 ? "full" : "viewer",
    hash: `hash${i}`,
    variant: i === 1 ? "B" : null,
    nodeId: i === 2 ? "n01" : null,
    mintMicro: i === 3 ? 5_000_000 : null,
    createdAt: 10 - i,
    expiresAt: i === 3 ? 99 : null,
    revokedAt: i === 4 ? 98 : null,
  }));
  const changes: Change[] = [...ofNodes, ...ofTasks, ...ofLedger, ...ofMail];
  for (const file of files)
    changes.push({ kind: "file.saved", file }, { kind: "files.tallied", files: 1, bytes: file.sizeBytes });
  for (const { id: _, ...one } of events) changes.push({ kind: "event.logged", event: one });
  for (const key of keys) changes.push({ kind: "key.saved", key });
  return { nodes, tasks, ledger, files, events, keys, messages, deliveries, changes };
}

export const byId = (a: Node, b: Node): number => (a.nodeId < b.nodeId ? -1 : 1);
export const idOf = ({ taskId }: Task): string => taskId;
/** What a slice holds of a list that is newest first. */
export function part<T>(list: readonly T[], { from, limit, offset }: sqlQuery.Slice): readonly T[] {
  if (from === "newest") return list.slice(offset, offset + limit);
  return list
    .toReversed()
    .slice(offset, offset + limit)
    .toReversed();
}

export type Read = <R>(query: Query<R>) => Promise<R>;
