/** The commands that random sequences are made of: each is sent to the hub and told to the model, and both must agree. */
import fc from "fast-check";
import { SECOND_MS } from "../../src/lib/clock.ts";
import type { Model, Task, VariantName } from "./model.ts";
import { type Real, same } from "./real.ts";
import {
  STATUS_WORDS,
  balanceOf,
  lux,
  messageWords,
  nodeWords,
  resultOf,
  statusWord,
  taskAnswer,
  taskWords,
} from "./words.ts";

/** What fast-check runs: `ids` are those that the hub has made, gone ones too. */
export type Command = fc.AsyncCommand<World, Real>;

export class World {
  readonly model: Model;
  readonly taskIds: string[] = [];
  readonly messageIds: string[] = [];
  readonly fileIds: string[] = [];
  daysPassed = 0;

  constructor(model: Model) {
    this.model = model;
  }

  /** One of the newest of a kind, so that commands meet; an id that there is not, while there is none. */
  task(n: number): string {
    return this.taskIds.at(-1 - n) ?? "no-task";
  }

  message(n: number): string {
    return this.messageIds.at(-1 - n) ?? "no-message";
  }

  file(n: number): string {
    return this.fileIds.at(-1 - n) ?? "no-file";
  }
}

const NODES = ["n0", "n1", "n2", "n3"] as const;
/** Sends but is not registered. */
const OPERATOR = "operator";
const PER_PAGE = 3;

const variant = fc.constantFrom<VariantName>("A", "B");
const node = fc.constantFrom(...NODES);
const recent = fc.nat({ max: 4 });
const capabilities = fc.subarray(["x", "y"]);
const micro = fc.constantFrom(0, 1, 100_000, 2_500_000, 1_000_000_000_000_000);

function command<A>(
  name: string,
  args: fc.Arbitrary<A>,
  run: (world: World, real: Real, args: A) => Promise<void>,
  check: (world: World) => boolean = () => true,
): fc.Arbitrary<Command> {
  return args.map((given) => ({
    check,
    run: (world, real) => run(world, real, given),
    toString: () => `${name}(${JSON.stringify(given)})`,
  }));
}

// ---- Nodes

const register = command(
  "register",
  fc.record({ variant, node, capabilities, maxTasks: fc.constantFrom(null, 1, 2) }),
  ({ model }, { hub }, { variant, node, capabilities, maxTasks }) => {
    const limits = maxTasks === null ? {} : { max_tasks: maxTasks };
    return same(
      hub.post("/node/register", { node_id: node, name: node, capabilities, ...limits }, { variant }),
      () => {
        const registered = model.register(node, variant, capabilities, maxTasks ?? Number.POSITIVE_INFINITY);
        return { created: registered.created, node: nodeWords(model, registered, variant) };
      },
    );
  },
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

// ---- Tasks

const PRIORITY_ASKED = { 0: 0, 1: "medium", 2: 2, 5: "p5" } as const;

const create = command(
  "create",
  fc.record({ variant, type: fc.constantFrom("", "x", "z"), priority: fc.constantFrom(0, 1, 2, 5), micro }),
  ({ model, taskIds }, { hub }, { variant, type, priority, micro }) => {
    const draft = { title: "t", description: "d", task_type: type, lux_reward: lux(micro) };
    const asked = hub.post("/task/create", { ...draft, priority: PRIORITY_ASKED[priority] }, { variant });
    return same(asked, (answer) => {
      const id = String(answer["task_id"]);
      taskIds.push(id);
      return taskAnswer(model, model.create(variant, { type, priority, rewardMicro: micro }, id), variant);
    });
  },
);

const taskAndNode = fc.record({ variant, task: recent, node });

function take(by: "assign" | "claim"): fc.Arbitrary<Command> {
  return command(by, taskAndNode, (world, { hub }, { variant, task, node }) => {
    const taskId = world.task(task);
    return same(hub.post(`/task/${by}`, { task_id: taskId, node_id: node }, { variant }), () =>
      taskAnswer(world.model, world.model.take(taskId, node), variant),
    );
  });
}

const complete = command(
  "complete",
  fc.record({ variant, task: recent, node, word: fc.constantFrom("this", "that"), byHolder: fc.boolean() }),
  (world, { hub }, { variant, task, node, word, byHolder }) => {
    const taskId = world.task(task);
    const holder = world.model.tasks.find(({ id }) => id === taskId)?.node;
    const nodeId = byHolder ? (holder ?? node) : node;
    const asked = { task_id: taskId, node_id: nodeId, result: resultOf(word) };
    return same(hub.post("/task/complete", asked, { variant }), () => {
      const done = world.model.complete(variant, taskId, nodeId, word);
      return { status: "completed", lux_paid: lux(done.rewardMicro), task_id: taskId };
    });
  },
);

const revoke = command(
  "revoke",
  fc.record({ variant, task: recent, to: fc.option(node) }),
  (world, { hub }, { variant, task, to }) => {
    const taskId = world.task(task);
    const asked = to === null ? { task_id: taskId } : { task_id: taskId, node_id: to };
    return same(hub.admin("/task/revoke", asked, { variant }), () => {
      // The answer tells of the moment of the revoke; what comes back to whom it was taken from comes after it.
      const revoked = world.model.revoke(taskId, to);
      return taskAnswer(world.model, revoked, variant);
    });
  },
);

const remove = command(
  "delete",
  fc.record({ variant, task: recent }),
  (world, { hub }, { variant, task }) => {
    const taskId = world.task(task);
    return same(hub.admin("/task/delete", { task_id: taskId }, { variant }), () => {
      world.model.delete(taskId);
      return { task_id: taskId };
    });
  },
);

const batchAssignListed = command(
  "batch-assign A",
  fc.array(fc.record({ task: recent, node }), { minLength: 1, maxLength: 4 }),
  (world, { hub }, pairs) => {
    const named = pairs.map(({ task, node }) => ({ taskId: world.task(task), nodeId: node }));
    const assignments = named.map(({ taskId, nodeId }) => ({ task_id: taskId, node_id: nodeId }));
    return same(hub.post("/task/batch-assign", { assignments }), () => {
      const codes = world.model.assignListed(named);
      return {
        results: assignments.map((one, i) => ({ ...one, success: codes[i] === null, error: codes[i] })),
      };
    });
  },
);

const batchAssignAll = command("batch-assign B", fc.constant(null), ({ model }, { hub }) =>
  same(hub.post("/task/batch-assign", undefined, { variant: "B" }), () => {
    const { assigned, pending } = model.runBalancer();
    const assignments = assigned.map((task) => ({ task_id: task.id, node_id: task.node }));
    return { assigned: assigned.length, pending, assignments };
  }),
);

const pull = command("pull", fc.record({ variant, node }), ({ model }, { hub }, { variant, node }) =>
  same(hub.get(`/task/pull?node_id=${node}`, { variant }), () => ({
    tasks: model
      .pull(node)
      .slice(0, 20)
      .map((task) => taskWords(model, task, variant)),
  })),
);

const STATES: Readonly<Record<string, readonly Task["status"][]>> = {
  open: ["open"],
  assigned: ["assigned"],
  pending: ["open", "assigned"],
  completed: ["completed"],
};

const list = command(
  "list",
  fc.record({
    variant,
    status: fc.option(fc.constantFrom(...Object.keys(STATES))),
    node: fc.option(node),
    page: fc.constantFrom(1, 2),
  }),
  ({ model }, { hub }, { variant, status, node, page }) => {
    const query = new URLSearchParams({ page: String(page), per_page: String(PER_PAGE) });
    if (status !== null) query.set("status", status);
    if (node !== null) query.set("node_id", node);
    return same(hub.get(`/task/list?${query}`, { variant }), () => {
      const states = status === null ? ["open", "assigned", "completed"] : (STATES[status] ?? []);
      const found = model.tasks
        .filter((task) => states.includes(task.status) && (node === null || task.node === node))
        .toReversed();
      const tasks = found.slice((page - 1) * PER_PAGE, page * PER_PAGE);
      const pages = Math.ceil(found.length / PER_PAGE);
      return { tasks: tasks.map((task) => taskWords(model, task, variant)), total: found.length, pages };
    });
  },
);

const stats = command("stats", fc.record({ variant }), ({ model }, { hub }, { variant }) =>
  same(hub.get("/task/stats", { variant }), () => {
    const counted = STATUS_WORDS[variant].map((word) => {
      return [word, model.tasks.filter(({ status }) => statusWord(status, variant) === word).length] as const;
    });
    const ranked = [...model.nodes.values()].map(({ id, ledger }) => ({
      node_id: id,
      completed: model.held(id, "completed"),
      lux_earned: lux(
        ledger.filter(({ kind }) => kind === "reward").reduce((sum, entry) => sum + entry.micro, 0),
      ),
    }));
    const top = ranked
      .filter(({ completed }) => completed > 0)
      .toSorted(
        (a, b) =>
          b.completed - a.completed || b.lux_earned - a.lux_earned || (a.node_id < b.node_id ? -1 : 1),
      );
    return { total: model.tasks.length, by_status: Object.fromEntries(counted), top_nodes: top };
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
    const entries = model.node(node).ledger.toReversed();
    const words = entries.map(({ micro, kind, taskId }) => ({ amount: lux(micro), kind, task_id: taskId }));
    return { entries: words.slice(0, 50), total: entries.length };
  }),
);

// ---- Messages: one mailbox, whichever of the two faces it is spoken to by

const face = fc.constantFrom("message/send", "agent/message");
const sender = fc.constantFrom(...NODES, OPERATOR);

const send = command(
  "send",
  fc.record({ face, variant, from: sender, to: node, ack: fc.boolean() }),
  ({ model, messageIds }, { hub }, { face, variant, from, to, ack }) => {
    const content = `message ${messageIds.length}`;
    const asked = { from_node: from, to_node: to, content, require_ack: ack };
    return same(hub.post(`/${face}`, asked, { variant }), (answer) => {
      const id = String(answer["message_id"]);
      model.send(from, to, content, ack, id);
      messageIds.push(id);
      return {};
    });
  },
);

const broadcast = command(
  "broadcast",
  fc.record({ face: fc.constantFrom("message", "agent"), variant, from: sender }),
  ({ model, messageIds }, { hub }, { face, variant, from }) => {
    const content = `broadcast ${messageIds.length}`;
    return same(hub.post(`/${face}/broadcast`, { from_node: from, content }, { variant }), (answer) => {
      const id = String(answer["message_id"]);
      messageIds.push(id);
      return { receivers: model.broadcast(from, content, id) };
    });
  },
);

const receive = command(
  "receive",
  fc.record({ variant, node, count: fc.constantFrom(1, 2, 10) }),
  ({ model }, { hub }, { variant, node, count }) =>
    same(hub.post("/message/receive", { node_id: node, count }, { variant }), () => {
      const taken = model.receive(node, count);
      const messages = taken.map(({ message, times }) => ({
        ...messageWords(message),
        deliveries: times,
        redelivered: times > 1,
      }));
      return { count: taken.length, messages };
    }),
);

/** A node that takes messages and never confirms them, until the hub gives up. */
const wornOut = command(
  "worn out",
  fc.record({ node, times: fc.integer({ min: 1, max: 7 }) }),
  async ({ model }, real, { node, times }) => {
    for (let i = 0; i < times; i++) {
      await same(real.hub.post("/message/receive", { node_id: node }), () => {
        const taken = model.receive(node, 10);
        return { messages: taken.map((one) => ({ id: one.message.id, deliveries: one.times })) };
      });
      await real.pass(30 * SECOND_MS);
      model.pass(30 * SECOND_MS);
    }
  },
);

const acknowledge = command(
  "ack",
  fc.record({ face: fc.constantFrom("message", "agent"), variant, node, message: recent }),
  (world, { hub }, { face, variant, node, message }) => {
    const messageId = world.message(message);
    return same(hub.post(`/${face}/ack`, { node_id: node, message_id: messageId }, { variant }), () => {
      world.model.acknowledge(node, messageId);
      return {};
    });
  },
);

const history = command(
  "history",
  fc.record({ variant, node, count: fc.constantFrom(2, 50) }),
  ({ model }, { hub }, { variant, node, count }) =>
    same(hub.get(`/message/history?node_id=${node}&count=${count}`, { variant }), () => ({
      messages: model.history(node, count).map(messageWords),
    })),
);

const mailbox = command(
  "agent/messages",
  fc.record({ variant, node, since: fc.option(recent), limit: fc.constantFrom(2, 50) }),
  (world, { hub }, { variant, node, since, limit }) => {
    const mark = since === null ? null : world.message(since);
    const query = `node_id=${node}&limit=${limit}${mark === null ? "" : `&since=${mark}`}`;
    return same(hub.get(`/agent/messages?${query}`, { variant }), () => ({
      messages: world.model.mailbox(node, mark, limit).map(messageWords),
    }));
  },
);

// ---- Files

const upload = command(
  "upload",
  fc.record({ variant, task: fc.option(recent) }),
  (world, { hub }, { variant, task }) => {
    const taskId = task === null ? null : world.task(task);
    const form = new FormData();
    form.set("file", new File(["content"], "a.txt"));
    if (taskId !== null) form.set("metadata", JSON.stringify({ task_id: taskId }));
    return same(hub.call("POST", "/file/upload", { body: form, variant }), (answer) => {
      const id = String(answer["file_id"]);
      world.model.upload(taskId, id);
      world.fileIds.push(id);
      return { task_id: taskId, size: 7 };
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
    files: model.files.toReversed().map(({ id, taskId }) => ({ file_id: id, task_id: taskId })),
    total: model.files.length,
  })),
);

// ---- Time, restarts, and who follows

const pass = command(
  "pass",
  fc.constantFrom(...[10, 29, 30, 31, 60, 89, 90, 91, 180].map((seconds) => seconds * SECOND_MS)),
  async ({ model }, real, ms) => {
    await real.pass(ms);
    model.pass(ms);
  },
);

const DAYS_MAX = 5;

/** Not so often that messages get past their time. */
const nextDay = command(
  "next day",
  fc.constantFrom(-1, 0, 1),
  async (world, real, offMs) => {
    world.daysPassed++;
    const ms = world.model.msToNextDay + offMs;
    await real.pass(ms);
    world.model.pass(ms);
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
    const after = Math.max(0, model.events.length - back);
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

/** The hub in all that it shows, as the model has it. */
export async function compareAll(world: World, real: Real): Promise<void> {
  const { model } = world;
  await real.compareEvents(model);
  await same(real.hub.get("/task/list", { variant: "B" }), () => ({
    tasks: model.tasks.toReversed().map((task) => taskWords(model, task, "B")),
  }));
  await same(real.hub.get("/node/list"), () => {
    const all = [...model.nodes.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return { nodes: all.map((one) => nodeWords(model, one, "A")) };
  });
}

const changing = [
  ...[register, register, register, heartbeat, heartbeat],
  ...[
    create,
    create,
    create,
    create,
    take("assign"),
    take("claim"),
    take("claim"),
    complete,
    complete,
    complete,
  ],
  ...[revoke, revoke, remove, batchAssignListed, batchAssignAll],
  ...[signIn, send, send, broadcast, receive, receive, acknowledge, upload, deleteFile],
  ...[pass, pass, pass, nextDay, restart],
];
const looking = [nodeList, pull, list, stats, ledger, history, mailbox, fileList, events, stream];

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
    pass,
    restart,
    ...looking.slice(5),
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
    pass,
    nextDay,
    nextDay,
    restart,
    stats,
    ledger,
  ],
];
