/** The commands of webhooks: what was sent to one is what the model's log has since. */
import { expect } from "bun:test";
import fc from "fast-check";
import type { EventKind } from "../../src/domain/event.ts";
import { type Event, type Model, type Webhook, isWanted } from "./model.ts";
import { type Real, eventText, inOrder, same } from "./real.ts";
import { NODES, command } from "./world.ts";

const KINDS: readonly (readonly EventKind[])[] = [
  [],
  [],
  ["task.assigned", "task.completed", "task.failed"],
  ["message.sent", "node.offline", "webhook.saved"],
];

export const putWebhook = command(
  "put webhook",
  fc.record({
    kinds: fc.constantFrom(...KINDS),
    node: fc.constantFrom(null, null, null, ...NODES.slice(0, 2)),
    task: fc.constantFrom(null, null, null, 0, 1),
  }),
  (world, real, { kinds, node, task }) => {
    const taskId = task === null ? null : world.task(task);
    const url = `https://receiver.test/${world.model.webhooks}`;
    const filter = { kinds, node_id: node, task_id: taskId };
    return same(real.hub.admin("/webhook/put", { name: "w", url, ...filter }), () => {
      world.model.putWebhook({ url, kinds, node, task: taskId });
      return { webhook: { state: "active", node_id: node, task_id: taskId } };
    });
  },
  ({ model }) => model.webhook === null, // one that replaces another one goes on from a cursor that only the hub knows
);

export const deleteWebhook = command(
  "delete webhook",
  fc.constant(null),
  async (world, real) => {
    await compareWebhook(world.model, real);
    await same(real.hub.admin("/webhook/delete", { name: "w" }), () => {
      world.model.deleteWebhook();
      return { name: "w" };
    });
  },
  ({ model }) => model.webhook !== null,
);

export const webhook = command("webhook", fc.constant(null), ({ model }, real) =>
  compareWebhook(model, real),
);

export async function compareWebhook(model: Model, real: Real): Promise<void> {
  if (model.webhook === null) return;
  const expected = wantedEvents(model, model.webhook);
  const sent = await real.sentTo(model.webhook.url, expected.length);
  expect(inOrder(sent, expected)).toEqual(inOrder(expected.map(eventText), expected));
}

function wantedEvents({ events }: Model, webhook: Webhook): readonly Event[] {
  return events.slice(webhook.from).filter((event) => isWanted(event, webhook));
}
