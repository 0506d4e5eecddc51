/** The commands of nodes, LUX, files and time, and the mixes of all commands that sequences are made of. */
import { expect } from "bun:test";
import fc from "fast-check";
import { LedgerCheck } from "../../src/cli/ledger-check.ts";
import { SECOND_MS } from "../../src/lib/clock.ts";
import {
  acknowledge,
  broadcast,
  history,
  mailbox,
  receive,
  redrive,
  send,
  wornOut,
} from "./message-commands.ts";
import type { File as ModelFile, Task } from "./model.ts";
import { type Real, arrayOf, same } from "./real.ts";
import {
  acquire,
  deleteNote,
  leaseWords,
  leases,
  notes,
  putNote,
  releaseLease,
  renew,
} from "./share-commands.ts";
import {
  answer,
  ask,
  batchAssignAll,
  batchAssignListed,
  cancel,
  update,
  complete,
  context,
  costs,
  create,
  createWithoutFiles,
  deleteBudget,
  deleteSchedule,
  extend,
  fail,
  graph,
  group,
  list,
  next,
  output,
  pull,
  putSchedule,
  readOutput,
  release,
  remove,
  retry,
  review,
  retryAll,
  revoke,
  runSchedule,
  sameBudgets,
  sameContext,
  sameCosts,
  sameGroup,
  sameOutput,
  sameSchedule,
  setBudget,
  stats,
  take,
} from "./task-commands.ts";
import { compareWebhook, deleteWebhook, putWebhook, webhook } from "./webhook-commands.ts";
import { balanceOf, lux, nodeWords, taskWords } from "./words.ts";
import { type Command, OPERATOR, type World, command, node, recent, variant } from "./world.ts";

const capabilities = fc.subarray(["x", "y"]);

// ---- Nodes

const register = command(
  "register",
  fc.record({
    variant,
    node,
    capabilities,
    maxTasks: fc.constantFrom(null, 1, 2),
    autoAssign: fc.constantFrom(null, true, true, false),
  }),
  ({ model }, { hub }, { variant, node, capabilities, maxTasks, autoAssign }) => {
    const limits = { max_tasks: maxTasks, auto_assign: autoAssign };
    return same(
      hub.post("/node/register", { node_id: node, name: node, capabilities, ...limits }, { variant }),
      () => {
        const auto = autoAssign ?? variant === "B";
        const most = maxTasks ?? Number.POSITIVE_INFINITY;
        const registered = model.register(node, variant, capabilities, most, auto);
        return { created: registered.created, node: nodeWords(model, registered, variant) };
      },
    );
  },
);

const deleteNode = command(
  "delete node",
  fc.record({ variant, node }),
  ({ model }, { hub }, { variant, node }) =>
    same(hub.admin("/node/delete", { node_id: node }, { variant }), () => {
      model.deleteNode(node);
      return { node_id: node };
    }),
);

const leave = command("leave", fc.record({ variant, node }), ({ model }, { hub }, { variant, node }) =>
  same(hub.post("/node/leave", { node_id: node }, { variant }), () => {
    model.leave(node);
    return { node_id: node };
  }),
);

const drain = command(
  "drain",
  fc.record({ variant, node, drain: fc.boolean() }),
  ({ model }, { hub }, { variant, node, drain }) =>
    same(hub.post("/node/drain", { node_id: node, drain }, { variant }), () => {
      model.drain(node, drain);
      return { node_id: node };
    }),
);

const heartbeat = command(
  "heartbeat",
  fc.record({ variant, node }),
  ({ model }, { hub }, { variant, node }) =>
    same(hub.post("/node/heartbeat", { node_id: node }, { variant }), () => {
      const beaten = model.heartbeat(node);
      return {
        heartbeat_interval: beaten.variant === "A" ? 60 : 30,
        tasks_assigned: model.held(node, "assigned"),
        messages_waiting: model.waiting(node),
      };
    }),
);

const nodeList = command("node list", fc.record({ variant }), ({ model }, { hub }, { variant }) =>
  same(hub.get("/node/list", { variant }), () => {
    const all = [...model.nodes.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return { nodes: all.map((one) => nodeWords(model, one, variant)) };
  }),
);

// ---- LUX

const signIn = command("sign in", fc.record({ variant, node }), ({ model }, { hub }, { variant, node }) =>
  same(hub.post("/signin", { node_id: node }, { variant }), () => {
    const signed = model.signIn(node);
    return {
      lux_earned: lux(signed.earnedMicro),
      already_signed_in: signed.earnedMicro === 0,
      lux_balance: balanceOf(signed.node),
      next_signin_at: new Date(model.now + model.msToNextDay).toISOString(),
    };
  }),
);

const ledger = command("ledger", fc.record({ variant, node }), ({ model }, { hub }, { variant, node }) =>
  same(hub.get(`/lux/ledger?node_id=${node}&per_page=50`, { variant }), () => {
    const entries = model.nodeOrFormer(node).ledger.toReversed();
    const words = entries.map(({ micro, kind, taskId }) => ({ amount: lux(micro), kind, task_id: taskId }));
    return { entries: words.slice(0, 50), total: entries.length };
  }),
);

const wholeLedger = command("whole ledger", fc.record({ variant }), ({ model }, { hub }, { variant }) =>
  same(hub.get("/lux/entries?limit=1000", { variant }), (answer) => {
    const entries = arrayOf(answer["entries"]);
    const check = new LedgerCheck(null);
    for (const entry of entries) check.take(JSON.stringify(entry));
    expect(check.end().faults).toEqual([]);
    expect(entries).toHaveLength(model.payments.length);
    const hash = entries.at(-1)?.["hash"] ?? null;
    return {
      entries: model.payments.map(({ nodeId, from, to, payment: { micro, kind, taskId } }) => ({
        ...{ from, to, node_id: nodeId },
        ...{ amount: lux(micro), kind, task_id: taskId },
      })),
      head: { seq: entries.length, hash },
    };
  }),
);

// ---- Files

function attachedWord({ taskId, isOutput }: ModelFile): string | null {
  return taskId === null ? null : isOutput ? "output" : "input";
}

const upload = command(
  "upload",
  fc.record({ variant, task: fc.option(recent), by: fc.constantFrom("nobody", "holder", "other"), node }),
  (world, { hub }, { variant, task, by, node }) => {
    const taskId = task === null ? null : world.task(task);
    const holder = world.model.tasks.find(({ id }) => id === taskId)?.node ?? null;
    const nodeId = by === "nobody" ? null : by === "holder" ? holder : node;
    const form = new FormData();
    form.set("file", new File(["content"], "a.txt"));
    form.set("metadata", JSON.stringify({ task_id: taskId, node: nodeId }));
    return same(hub.call("POST", "/file/upload", { body: form, variant }), (answer) => {
      const id = String(answer["file_id"]);
      world.fileIds.push(id);
      const file = world.model.upload({ task: taskId, node: nodeId }, id);
      return { task_id: file.taskId, attached: attachedWord(file), size: 7 };
    });
  },
);

const deleteFile = command(
  "delete file",
  fc.record({ variant, file: recent }),
  (world, { hub }, { variant, file }) => {
    const fileId = world.file(file);
    return same(hub.post("/file/delete", { file_id: fileId }, { variant }), () => {
      world.model.deleteFile(fileId);
      return { file_id: fileId };
    });
  },
);

const fileList = command("file list", fc.record({ variant }), ({ model }, { hub }, { variant }) =>
  same(hub.get("/file/list?per_page=50", { variant }), () => ({
    files: model.files
      .toReversed()
      .map((file) => ({ file_id: file.id, task_id: file.taskId, attached: attachedWord(file) })),
    total: model.files.length,
  })),
);

// ---- Several at once

/** What these do ends with their commit. */
const within = fc.oneof(
  ...[heartbeat, createWithoutFiles, createWithoutFiles, next, next, take("assign"), take("claim")],
  ...[extend, output, output, signIn, send, receive, acknowledge],
);
/** After these the hub settles or balances, in commits of its own: nothing follows them in a batch. */
const atItsEnd = fc.oneof(complete, release, fail, retry, retryAll, cancel);

const batch: fc.Arbitrary<Command> = fc
  .tuple(fc.array(within, { maxLength: 5 }), fc.oneof(within, atItsEnd))
  .map(([first, last]) => {
    const commands = [...first, last];
    return {
      check: () => true,
      run: (world, real) => real.inBatches(() => commands.map((one) => one.run(world, real))),
      toString: () => `batch(${commands.join(", ")})`,
    };
  });

// ---- Time, restarts, and who follows

const pass = command(
  "pass",
  fc.constantFrom(...[10, 29, 30, 31, 60, 89, 90, 91, 180].map((seconds) => seconds * SECOND_MS)),
  passes,
);

/** The model needs the id of the task that the schedule has created meanwhile, if it has. */
async function passes({ model, taskIds }: World, real: Real, ms: number): Promise<void> {
  await real.pass(ms);
  const { body } = await real.hub.get("/schedule/list");
  const id = String(arrayOf(body["schedules"])[0]?.["last_task_id"]);
  model.pass(ms, () => {
    taskIds.push(id);
    return id;
  });
}

const DAYS_MAX = 5;

/** Not so often that messages get past their time. */
const nextDay = command(
  "next day",
  fc.constantFrom(-1, 0, 1),
  async (world, real, offMs) => {
    world.daysPassed++;
    await passes(world, real, world.model.msToNextDay + offMs);
  },
  ({ daysPassed }) => daysPassed < DAYS_MAX,
);

const restart = command("restart", fc.constant(null), async ({ model }, real) => {
  await real.restart();
  model.restart();
});

const events = command("events", fc.constant(null), async ({ model }, real) => real.compareEvents(model));

const stream = command(
  "stream",
  fc.record({ which: fc.nat({ max: 3 }), back: fc.nat({ max: 40 }) }),
  async ({ model, messageIds }, real, { which, back }) => {
    const node = [...model.nodes.keys()][which % model.nodes.size] ?? "";
    let after = Math.max(0, model.events.length - back);
    // Of what is logged together nobody knows what comes first: all of it, or nothing.
    const batch = model.events[after]?.batch ?? null;
    while (batch !== null && model.events[after - 1]?.batch === batch) after--;
    await real.compareStream(model, node, after, () => {
      const content = `live ${messageIds.length}`;
      const asked = { from_node: OPERATOR, to_node: node, content };
      return same(real.hub.post("/message/send", asked), (answer) => {
        const id = String(answer["message_id"]);
        messageIds.push(id);
        model.send(OPERATOR, node, content, false, id);
        return {};
      });
    });
  },
  ({ model }) => model.nodes.size > 0,
);

const isFinished = ({ status }: Task): boolean => status === "completed" || status === "failed";

export async function compareAll(world: World, real: Real): Promise<void> {
  const { model } = world;
  await real.compareEvents(model);
  await same(real.hub.get("/lease/list?per_page=50"), () => ({ leases: model.leases.map(leaseWords) }));
  await same(real.hub.get("/task/list", { variant: "B" }), () => ({
    tasks: model.tasks
      .toReversed()
      .toSorted((a, b) => Number(isFinished(a)) - Number(isFinished(b)))
      .map((task) => taskWords(model, task, "B")),
  }));
  for (const { id } of model.tasks) {
    await sameContext(model, id, real.hub);
    await sameOutput(model, id, real.hub, "A");
  }
  await sameGroup(model, real.hub, "A");
  await sameSchedule(model, real.hub);
  await compareWebhook(model, real);
  await sameBudgets(model, real.hub);
  for (const by of ["node", "type"] as const) await sameCosts(model, by, real.hub, "A");
  await same(real.hub.get("/node/list"), () => {
    const all = [...model.nodes.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return { nodes: all.map((one) => nodeWords(model, one, "A")) };
  });
}

const changing = [
  ...[register, register, register, heartbeat, heartbeat, deleteNode],
  ...[
    create,
    create,
    create,
    graph,
    take("assign"),
    take("claim"),
    take("claim"),
    complete,
    complete,
    complete,
  ],
  ...[next, next, next, next, batch, batch, batch],
  ...[
    release,
    release,
    ask,
    ask,
    answer,
    answer,
    fail,
    fail,
    extend,
    output,
    output,
    output,
    review,
    review,
    cancel,
    update,
    retry,
    retry,
    retryAll,
    retryAll,
    leave,
    drain,
  ],
  ...[revoke, revoke, remove, batchAssignListed, batchAssignAll, setBudget, deleteBudget],
  ...[signIn, send, send, broadcast, receive, receive, acknowledge, upload, deleteFile],
  ...[putNote, deleteNote, acquire, acquire, acquire, renew, releaseLease],
  ...[putSchedule, putSchedule, runSchedule, deleteSchedule],
  ...[putWebhook, putWebhook, deleteWebhook],
  ...[pass, pass, pass, nextDay, restart],
];
const looking = [
  nodeList,
  pull,
  group,
  list,
  readOutput,
  costs,
  context,
  stats,
  ledger,
  wholeLedger,
  history,
  mailbox,
  fileList,
  leases,
  notes,
  events,
  stream,
  webhook,
];

/** A sequence is of one mix: of everything, or of few kinds, which then come near their limits. */
export const mixes: readonly (readonly fc.Arbitrary<Command>[])[] = [
  [...changing, ...looking],
  [
    register,
    register,
    send,
    send,
    send,
    broadcast,
    receive,
    acknowledge,
    wornOut,
    redrive,
    pass,
    restart,
    ...looking.slice(6),
  ],
  [
    ...[register, register, create, create, take("claim"), take("claim"), next, next, leases, leases],
    ...[
      acquire,
      acquire,
      acquire,
      acquire,
      acquire,
      renew,
      releaseLease,
      putNote,
      putNote,
      deleteNote,
      notes,
    ],
    ...[release, fail, complete, revoke, remove, cancel, leave, heartbeat, pass, restart],
  ],
  [
    register,
    create,
    create,
    complete,
    complete,
    signIn,
    signIn,
    signIn,
    ...[setBudget, setBudget, extend, extend, take("claim"), take("claim"), deleteBudget],
    pass,
    nextDay,
    nextDay,
    restart,
    stats,
    ledger,
    wholeLedger,
  ],
  [
    ...[register, putSchedule, putSchedule, putSchedule, runSchedule, deleteSchedule],
    ...[next, next, complete, fail, cancel, remove, graph, group],
    ...[pass, pass, pass, pass, pass, nextDay, restart, stream],
  ],
  [
    ...[
      register,
      register,
      create,
      create,
      graph,
      next,
      next,
      take("claim"),
      complete,
      fail,
      release,
      remove,
    ],
    ...[send, receive, batch, review, cancel, retry, leave, heartbeat],
    ...[putWebhook, putWebhook, putWebhook, putWebhook, deleteWebhook, webhook, webhook, webhook],
    ...[pass, restart, restart],
  ],
];
