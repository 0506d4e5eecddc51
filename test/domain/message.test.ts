/** Messages (domain/message.ts): the state diagram of a delivery, every state with every command. */
import { describe, expect, test } from "bun:test";
import type { Change } from "../../src/domain/change.ts";
import { ACK_LEASE_MS, REDELIVERIES_MAX } from "../../src/domain/limits.ts";
import {
  acknowledge,
  beginBroadcast,
  broadcast,
  continueBroadcast,
  dropBroadcast,
  expire,
  expireLeases,
  publish,
  putBack,
  receive,
  redrive,
  send,
} from "../../src/domain/message.ts";
import type { Delivery, DeliveryState, DeliveryStub } from "../../src/domain/model.ts";
import { NOW, STEADY, type Sketch, delivery, message, node, sketch, sketchChange, stub } from "./samples.ts";

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
        ...(receivers.length === 0 ? [] : [`deliveries.queued m1 ${receivers.join()}`]),
        `broadcast m1 null ${receivers.length}`,
        `message.sent null null {"message_id":"m1","from_node":"sender","type":"alert","receivers":${receivers.length}}`,
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
    'message.acked n1 null {"message_id":"m1","from_node":"sender"}',
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
      'message.parked n1 null {"message_id":"m1","from_node":"sender"}',
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
      current = after(current, expireLeases([{ ...stub(), ...current }], NOW).changes);
    }
    expect({ delivered, state: current.state }).toEqual({ delivered: 6, state: "parked" });
  });
});

describe("redrive", () => {
  const asked = { messageId: "m1", nodeId: "n1" };
  const cells: Readonly<Record<DeliveryState, Sketch>> = {
    waiting: "message_not_parked",
    leased: "message_not_parked",
    gone: "message_not_parked",
    acked: "message_not_parked",
    parked: ["answers null", "n1 #1 waiting 0 null"],
  };
  for (const state of ALL)
    test(state, () => {
      const decision = redrive({ messageId: "m1" }, STATES[state], node("n1"), asked);
      expect(sketch(decision, String)).toEqual(cells[state]);
    });
});

describe("retention", () => {
  const lost = ['message.expired n1 null {"message_id":"m1","from_node":"sender"}'];
  const cells: Readonly<Record<DeliveryState, readonly string[]>> = {
    waiting: lost,
    leased: lost,
    gone: [],
    acked: [],
    parked: lost,
  };
  for (const state of ALL)
    test(`logs an event for a message that is ${state}, if its recipient never received or confirmed it`, () => {
      expect(expire([STATES[state]], NOW).map(sketchChange)).toEqual([...cells[state]]);
    });
  test("counts the recipients of a broadcast down", () => {
    const some = [STATES.waiting, STATES.waiting, STATES.gone, STATES.acked];
    const old = some.map((one) => ({ ...one, broadcast: true }));
    expect(expire(old, NOW).map(sketchChange)).toEqual(["broadcast #1 -2 -1 -1", ...lost, ...lost]);
  });
});

describe("a broadcast in several steps", () => {
  const toAll = message("m1", { toNode: null, type: "alert" });
  const unfinished = { messageId: "m1", seq: 1, writeUntil: STEADY };
  test("begins with the message and the first deliveries, and no event", () => {
    expect(sketch(beginBroadcast(toAll, ["a", "sender"], STEADY), String)).toEqual([
      "answers a",
      "message.stored m1",
      "deliveries.queued m1 a",
      `broadcast m1 ${STEADY} 1`,
    ]);
  });
  test("goes on while it is not given up", () => {
    const go = (given: typeof unfinished | null) =>
      sketch(continueBroadcast(toAll, ["b", "c"], given, 1, STEADY + 1), String);
    expect(go(unfinished)).toEqual([
      "answers b,c",
      "deliveries.queued m1 b,c",
      `broadcast m1 ${STEADY + 1} 3`,
    ]);
    expect(go({ ...unfinished, writeUntil: 0 })).toBe("undecided");
    expect(go(null)).toBe("undecided");
  });
  test("ends with one event for all, unless it was given up", () => {
    const end = (given: typeof unfinished | null) => sketch(publish(toAll, ["a", "b"], given), String);
    expect(end(unfinished)).toEqual([
      "answers a,b",
      "broadcast m1 null 2",
      'message.sent null null {"message_id":"m1","from_node":"sender","type":"alert","receivers":2}',
    ]);
    expect(end({ ...unfinished, writeUntil: 0 })).toBe("undecided");
    expect(end(null)).toBe("undecided");
  });
  test("is removed a part at a time, and is given up first", () => {
    expect(sketch(dropBroadcast(unfinished, 5, 5), String)).toEqual([
      "answers false",
      "broadcast m1 0 0",
      "broadcast.trimmed",
    ]);
    expect(sketch(dropBroadcast(unfinished, 4, 5), String)).toEqual([
      "answers true",
      "broadcast.trimmed",
      "broadcast.removed",
      "message.removed",
    ]);
  });
});

describe("a broadcast's counts", () => {
  test("follow each recipient: received, put back, confirmed", () => {
    const waiting = delivery({}, { toNode: null });
    const taken = receive(node("n1"), "n1", [waiting], STEADY);
    expect(sketch(taken, () => "")).toEqual(["answers ", "n1 #1 gone 1 null", "broadcast #1 -1 +1 0"]);
    const gone = stub({ state: "gone", deliveries: 1, broadcast: true });
    expect(sketch(putBack([gone], [gone]), String)).toEqual([
      "answers 1",
      "n1 #1 waiting 0 null",
      "broadcast #1 +1 -1 0",
    ]);
    const asked = { messageId: "m1", nodeId: "n1" };
    const acked = acknowledge({ messageId: "m1" }, gone, node("n1"), asked, NOW);
    expect(sketch(acked, String)).toContain("broadcast #1 0 -1 +1");
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
