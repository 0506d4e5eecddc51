/** The commands of messages: one mailbox, through agent/* or message/*. */
import fc from "fast-check";
import { SECOND_MS } from "../../src/lib/clock.ts";
import { same } from "./real.ts";
import { fateWords, messageWords } from "./words.ts";
import { NODES, OPERATOR, command, node, recent, variant } from "./world.ts";

const face = fc.constantFrom("message/send", "agent/message");
const sender = fc.constantFrom(...NODES, OPERATOR);

export const send = command(
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

export const broadcast = command(
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

export const receive = command(
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
export const wornOut = command(
  "worn out",
  fc.record({ node, times: fc.integer({ min: 1, max: 7 }) }),
  async ({ model }, real, { node, times }) => {
    for (let i = 0; i < times; i++) {
      await same(real.hub.post("/message/receive", { node_id: node }), () => {
        const taken = model.receive(node, 10);
        return { messages: taken.map((one) => ({ id: one.message.id, deliveries: one.times })) };
      });
      await real.pass(30 * SECOND_MS);
      model.pass(30 * SECOND_MS, () => {
        throw new Error("a sequence of messages has no schedule");
      });
    }
  },
);

export const acknowledge = command(
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

export const history = command(
  "history",
  fc.record({ variant, node, before: fc.option(recent), count: fc.constantFrom(2, 50) }),
  (world, { hub }, { variant, node, before, count }) => {
    const mark = before === null ? null : world.message(before);
    const query = `node_id=${node}&count=${count}${mark === null ? "" : `&before=${mark}`}`;
    return same(hub.get(`/message/history?${query}`, { variant }), () => ({
      messages: world.model.history(node, mark, count).map((one) => fateWords(one, node)),
    }));
  },
);

export const redrive = command(
  "redrive",
  fc.record({ variant, node, message: recent }),
  async (world, { hub }, { variant, node, message }) => {
    const parked = (): readonly string[] => world.model.parked(node).map(({ id }) => id);
    await same(hub.get(`/message/parked?node_id=${node}&per_page=50`, { variant }), () => ({
      messages: world.model.parked(node).map((one) => fateWords(one, node)),
      total: parked().length,
    }));
    const messageId = world.model.nodes.has(node)
      ? (parked()[0] ?? world.message(message))
      : world.message(message);
    await same(hub.post("/message/redrive", { node_id: node, message_id: messageId }, { variant }), () => {
      world.model.redrive(node, messageId);
      return {};
    });
  },
);

export const mailbox = command(
  "agent/messages",
  fc.record({
    variant,
    node,
    bound: fc.option(fc.constantFrom("since", "before")),
    message: recent,
    limit: fc.constantFrom(2, 50),
  }),
  (world, { hub }, { variant, node, bound, message, limit }) => {
    const mark = bound === null ? null : world.message(message);
    const query = `node_id=${node}&limit=${limit}${mark === null ? "" : `&${bound}=${mark}`}`;
    const [since, before] = bound === "since" ? [mark, null] : [null, mark];
    return same(hub.get(`/agent/messages?${query}`, { variant }), () => ({
      messages: world.model.mailbox(node, since, before, limit).map((one) => fateWords(one, node)),
    }));
  },
);
