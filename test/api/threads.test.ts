/** Conversations: reply_to and thread of messages; messages to the nodes that take a type of tasks. */
import { describe, expect, test } from "bun:test";
import { onlyOnce, startHub } from "../support/hub.ts";
import { NO_ID, VARIANTS, badFields, list, ok, pick, refused } from "./scene.ts";

const once = onlyOnce(import.meta.url);

describe("a reply", () => {
  test("continues the thread of the message that it answers, on both variants", async () => {
    await using hub = await startHub();
    await hub.addNodes(["ann", "bob"]);
    for (const variant of VARIANTS) {
      const question = await hub.send("ann", "bob", { content: "where?" });
      const [asked] = await hub.receive("bob");
      expect(asked).toMatchObject({ id: question, reply_to: null, thread: question });
      const draft = { from_node: "bob", to_node: "ann", content: "there", reply_to: question };
      const answer = await ok(hub.post("/message/send", draft, { variant }));
      const [got] = await hub.receive("ann");
      expect(got).toMatchObject({ id: answer["message_id"], reply_to: question, thread: question });
      // The answer to the answer is of the same conversation, unless it names another.
      const again = { from_node: "ann", to_node: "bob", content: "thanks", reply_to: answer["message_id"] };
      await ok(hub.post("/message/send", again, { variant }));
      await ok(hub.post("/message/send", { ...again, thread: "plans" }, { variant }));
      expect(pick({ messages: await hub.receive("bob") }, "messages", "thread")).toEqual([question, "plans"]);
      const history = await ok(hub.get(`/message/history?node_id=bob&thread=${question}`, { variant }));
      expect(pick(history, "messages", "content")).toEqual(["thanks", "there", "where?"]);
      const rest = `&before=${String(answer["message_id"])}`;
      const older = await ok(hub.get(`/message/history?node_id=bob&thread=${question}${rest}`, { variant }));
      expect(pick(older, "messages", "content")).toEqual(["where?"]);
    }
  });

  once.test("to a broadcast is of its thread, and each node sees its own part", async () => {
    await using hub = await startHub();
    await hub.addNodes(["ann", "bob", "cy"]);
    const call = { from_node: "ann", content: "who can?", thread: "who" };
    const { message_id } = await ok(hub.post("/message/broadcast", call));
    for (const from_node of ["bob", "cy"])
      await ok(
        hub.post("/agent/message", { from_node, to_node: "ann", content: from_node, reply_to: message_id }),
      );
    const seen = async (nodeId: string) =>
      pick(await ok(hub.get(`/message/history?node_id=${nodeId}&thread=who`)), "messages", "content");
    expect(await seen("ann")).toEqual(["cy", "bob", "who can?"]);
    expect(await seen("bob")).toEqual(["bob", "who can?"]);
  });

  once.test("answers only what its sender has sent or received", async () => {
    await using hub = await startHub();
    await hub.addNodes(["ann", "bob", "cy"]);
    const question = await hub.send("ann", "bob");
    const reply = (from_node: string, reply_to: string) =>
      hub.post("/message/send", { from_node, to_node: "ann", content: "x", reply_to });
    await refused(reply("cy", question), 403, "not_your_message");
    await refused(reply("bob", NO_ID), 404, "message_not_found");
    await ok(reply("ann", question)); // to herself, about what she wrote
    const broadcast = { from_node: "cy", content: "x", reply_to: question };
    await refused(hub.post("/message/broadcast", broadcast), 403, "not_your_message");
  });

  once.test("names a thread of at most 128 characters", async () => {
    await using hub = await startHub();
    await hub.addNode("bob");
    const draft = { from_node: "ann", to_node: "bob", content: "x" };
    await ok(hub.post("/message/send", { ...draft, thread: "x".repeat(128) }));
    for (const thread of ["", " ", "x".repeat(129), 7])
      await badFields(hub.post("/message/send", { ...draft, thread }), ["thread"]);
  });
});

test("a broadcast by capability reaches the online nodes that take the type, and node/list finds them", async () => {
  await using hub = await startHub();
  await hub.addNode("all");
  await hub.addNode("both", { capabilities: ["draw", "write"] });
  await hub.addNode("gone", { capabilities: ["draw"] });
  await hub.addNode("writer", { capabilities: ["write"] });
  await ok(hub.post("/node/leave", { node_id: "gone" }));
  for (const [variant, path] of [
    ["A", "/agent/broadcast"],
    ["B", "/message/broadcast"],
  ] as const) {
    const call = (capability: string) =>
      hub.post(path, { from_node: "boss", content: "x", capability }, { variant });
    expect(await ok(call("draw"))).toMatchObject({ receivers: ["all", "both"] });
    expect(await ok(call("sing"))).toMatchObject({ receivers: ["all"] });
    await badFields(call(" "), ["capability"]);
  }
  expect(await hub.receive("writer")).toEqual([]);
  const found = async (query: string) => {
    const page = await ok(hub.get(`/node/list?${query}`));
    return [pick(page, "nodes", "node_id"), page["total"]];
  };
  expect(await found("capability=draw")).toEqual([["all", "both", "gone"], 3]);
  expect(await found("capability=draw&status=online")).toEqual([["all", "both"], 2]);
  expect(await found("capability=draw&order=busy&q=b")).toEqual([["both"], 1]);
  const first = await ok(hub.get("/node/list?capability=draw&per_page=1"));
  const second = await ok(
    hub.get(`/node/list?capability=draw&per_page=1&cursor=${String(first["next_cursor"])}`),
  );
  expect([pick(first, "nodes", "node_id"), pick(second, "nodes", "node_id")]).toEqual([["all"], ["both"]]);
  expect(list(await ok(hub.get("/node/list")), "nodes")).toHaveLength(4);
});
