/** Messages (domain/message.ts): the state diagram of a delivery, every state with every command. */
import { describe, expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { ACK_LEASE_MS, REDELIVERIES_MAX } from "../../src/domain/limits.ts";
import { acknowledge, broadcast, expireLeases, putBack, receive, send } from "../../src/domain/message.ts";
import type { Delivery, DeliveryState, DeliveryStub } from "../../src/domain/model.ts";
import { NOW, STEADY, type Sketch, delivery, message, node, sketch, stub } from "./samples.ts";

const STATES: Readonly<Record<DeliveryState, DeliveryStub>> = {
  waiting: stub(),
  leased: stub({ state: "leased", deliveries: 1, leaseUntil: STEADY }),
  gone: stub({ state: "gone", deliveries: 1 }),
  acked: stub({ state: "acked", deliveries: 1 }),
  parked: stub({ state: "parked", deliveries: REDELIVERIES_MAX + 1 }),
};
const ALL = Object.keys(STATES) as DeliveryState[];

describe("send", () => {
  test("stores the message, queues it, and logs an event without the content", () => {
    const decision = send(message("m1"), node("n1"), "n1");
    expect(sketch(decision, (m) => m.messageId)).toEqual([
      "answers m1",
      "message.stored m1",
      "delivery.queued m1 n1",
      'message.sent n1 null {"message_id":"m1","from_node":"sender","type":"text"}',
    ]);
    const events = decision.kind === "accepted" ? decision.changes.slice(1) : [];
    expect(JSON.stringify(events)).not.toContain("secret words");
  });
  test("an offline node has a mailbox too", () => {
    expect(send(message("m1"), node("n1", { online: false }), "n1").kind).toBe("accepted");
  });
  test("to an unknown node", () =>
    expect(sketch(send(message("m1"), null, "n1"), String)).toBe("node_not_found"));
});

describe("broadcast", () => {
  const rows: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ["nobody online", [], []],
    ["only the sender", ["sender"], []],
    ["all except the sender", ["a", "sender", "b"], ["a", "b"]],
    ["a sender that is not a node", ["a", "b"], ["a", "b"]],
  ];
  for (const [name, online, receivers] of rows)
    test(name, () => {
      const decision = broadcast(message("m1", { toNode: null, type: "alert" }), online);
      expect(decision.answer).toEqual(receivers);
      expect(sketch(decision, String).slice(1)).toEqual([
        "message.stored m1",
        ...receivers.flatMap((to) => [
          `delivery.queued m1 ${to} of a broadcast`,
          `message.sent ${to} null {"message_id":"m1","from_node":"sender","type":"alert"}`,
        ]),
      ]);
    });
});

describe("receive", () => {
  const take = (...waiting: readonly Delivery[]) => receive(node("n1"), "n1", waiting, STEADY);
  test("an unknown node", () =>
    expect(sketch(receive(null, "n1", [], STEADY), String)).toBe("node_not_found"));
  test("an empty mailbox", () => expect(sketch(take(), String)).toBe("undecided"));
  test("without an ACK it is gone", () => {
    expect(sketch(take(delivery()), String).slice(1)).toEqual(["n1 #1 gone 1 null"]);
  });
  test("with an ACK it is leased", () => {
    const until = STEADY + ACK_LEASE_MS;
    expect(sketch(take(delivery({}, { requireAck: true })), String).slice(1)).toEqual([
      `n1 #1 leased 1 ${until}`,
    ]);
  });
  test("a redelivery increments the count", () => {
    const again = delivery({ deliveries: 3 }, { requireAck: true });
    expect(take(again)).toMatchObject({ answer: [{ deliveries: 4, state: "leased" }] });
  });
  test("returns the messages in order", () => {
    const decision = take(delivery({ seq: 3 }), delivery({ seq: 5 }, { requireAck: true, messageId: "m2" }));
    expect(decision).toMatchObject({ answer: [{ seq: 3 }, { seq: 5 }] });
    expect(decision).toMatchObject({ changes: [{ messageId: "m1" }, { messageId: "m2" }] });
  });
});

describe("acknowledge", () => {
  const asked = { messageId: "m1", nodeId: "n1" };
  const acked = (deliveries: number): Sketch => [
    "answers null",
    `n1 #1 acked ${deliveries} null`,
    'message.acked n1 null {"message_id":"m1"}',
  ];
  const cells: Readonly<Record<DeliveryState, Sketch>> = {
    waiting: acked(0),
    leased: acked(1),
    gone: acked(1),
    acked: ["answers null"],
    parked: acked(REDELIVERIES_MAX + 1),
  };
  for (const state of ALL)
    test(state, () => {
      const decision = acknowledge({ messageId: "m1" }, STATES[state], node("n1"), asked, NOW);
      expect(sketch(decision, String)).toEqual(cells[state]);
    });
  test("by an unknown node", () => {
    expect(sketch(acknowledge(null, null, null, asked, NOW), String)).toBe("node_not_found");
  });
  test("of an unknown message", () => {
    expect(sketch(acknowledge(null, null, node("n1"), asked, NOW), String)).toBe("message_not_found");
  });
  test("of another node's message", () => {
    const decision = acknowledge({ messageId: "m1" }, null, node("n1"), asked, NOW);
    expect(sketch(decision, String)).toBe("not_your_message");
  });
});

describe("visibility timeout", () => {
  const leased = (deliveries: number): DeliveryStub =>
    stub({ state: "leased", deliveries, leaseUntil: STEADY });
  for (let deliveries = 1; deliveries <= REDELIVERIES_MAX; deliveries++)
    test(`after delivery ${deliveries} it waits again`, () => {
      expect(sketch(expireLeases([leased(deliveries)], NOW), String)).toEqual([
        "answers 1",
        `n1 #1 waiting ${deliveries} null`,
      ]);
    });
  test("after the last redelivery it is parked, with an event", () => {
    expect(sketch(expireLeases([leased(REDELIVERIES_MAX + 1)], NOW), String)).toEqual([
      "answers 1",
      `n1 #1 parked ${REDELIVERIES_MAX + 1} null`,
      'message.parked n1 null {"message_id":"m1"}',
    ]);
  });
  test("a message that is never acknowledged is delivered once and redelivered five times", () => {
    let current: Delivery = delivery({}, { requireAck: true });
    let delivered = 0;
    while (current.state === "waiting") {
      const taken = receive(node("n1"), "n1", [current], STEADY);
      if (taken.kind !== "accepted" || !taken.answer[0]) throw new Error("not taken");
      delivered++;
      current = taken.answer[0];
      current = after(current, expireLeases([{ ...current, messageId: "m1" }], NOW).changes);
    }
    expect({ delivered, state: current.state }).toEqual({ delivered: 6, state: "parked" });
  });
});

describe("putBack", () => {
  const takenLeased = delivery({ state: "leased", deliveries: 1, leaseUntil: STEADY }, { requireAck: true });
  const takenGone = delivery({ state: "gone", deliveries: 1 });
  const rows: readonly (readonly [string, Delivery, DeliveryStub, string | null])[] = [
    ["still leased", takenLeased, STATES.leased, "n1 #1 waiting 0 null"],
    [
      "leased, and all leases renewed",
      takenLeased,
      stub({ ...STATES.leased, leaseUntil: STEADY + 9 }),
      "n1 #1 waiting 0 null",
    ],
    ["still gone", takenGone, STATES.gone, "n1 #1 waiting 0 null"],
    ["acknowledged meanwhile", takenLeased, STATES.acked, null],
    ["gone, acknowledged meanwhile", takenGone, STATES.acked, null],
    ["waits again", takenLeased, stub({ deliveries: 1 }), null],
    ["redelivered meanwhile", takenLeased, stub({ ...STATES.leased, deliveries: 2 }), null],
    ["parked meanwhile", takenLeased, stub({ state: "parked", deliveries: 1 }), null],
    ["another delivery", takenLeased, stub({ ...STATES.leased, seq: 2 }), null],
  ];
  for (const [name, taken, current, expected] of rows)
    test(name, () => {
      const decision = putBack([taken], [current]);
      expect(sketch(decision, String)).toEqual(expected === null ? ["answers 0"] : ["answers 1", expected]);
    });
  test("pruned meanwhile", () => expect(putBack([takenLeased], []).changes).toEqual([]));
  test("of a redelivery restores the count before it", () => {
    const third = delivery({ state: "leased", deliveries: 3, leaseUntil: STEADY }, { requireAck: true });
    expect(putBack([third], [{ ...third }]).changes).toMatchObject([{ deliveries: 2, state: "waiting" }]);
  });
});

/** The delivery after its own change. */
function after(current: Delivery, changes: readonly Change[]): Delivery {
  const moved = changes.find((change) => change.kind === "delivery.moved");
  if (!moved) throw new Error("nothing moved");
  const { state, deliveries, leaseUntil } = moved;
  return { ...current, state, deliveries, leaseUntil };
}
