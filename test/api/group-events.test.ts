/** The events of a group and of a tag, in lists and in streams. */
import { expect, test } from "bun:test";
import { LuxHub } from "../../src/client/luxhub.ts";
import { SECRET, type TestHub, startHub } from "../support/hub.ts";
import { list, ok, record } from "./scene.ts";

type Fields = Readonly<Record<string, unknown>>;

async function ended(hub: TestHub): Promise<readonly Fields[]> {
  return list(await ok(hub.get("/events?since=0&kind=group.ended")), "events");
}

/** Until group.ended was logged so often: it is logged in a commit of its own. */
async function endedTimes(hub: TestHub, times: number): Promise<void> {
  while ((await ended(hub)).length < times) await Bun.sleep(1);
  expect(await ended(hub)).toHaveLength(times);
}

test("a group selects events, also those of a stream", async () => {
  await using hub = await startHub();
  const stop = new AbortController();
  const client = new LuxHub({ url: hub.base(), secret: SECRET });
  const follow = client.events({ since: 0, group: "g", signal: stop.signal });
  const a = await hub.addTask({ group: "g", creator_node: "n9" });
  await hub.addTask({ group: "other" });
  await hub.addTask();
  await ok(hub.post("/group/cancel", { group: "g" }));
  await endedTimes(hub, 1);
  const kinds = ["task.created", "task.failed", "group.ended"];
  const events = list(await ok(hub.get("/events?since=0&group=g")), "events");
  expect(events.map(({ kind }) => kind)).toEqual(kinds);
  expect(events.map(({ task_id }) => task_id)).toEqual([a, a, null]);
  for (const { data } of events) expect(record(data)["group"]).toBe("g");
  const streamed: unknown[] = [];
  for await (const { kind } of follow) {
    streamed.push(kind);
    if (kind === "group.ended") break;
  }
  stop.abort();
  expect(streamed).toEqual(kinds);
});

test("a tag selects events, also those of a stream: a tag is a whole word, which the task had at that time", async () => {
  await using hub = await startHub();
  const stop = new AbortController();
  const client = new LuxHub({ url: hub.base(), secret: SECRET });
  const follow = client.events({ since: 0, tag: "50% _'x", signal: stop.signal });
  const a = await hub.addTask({ tags: ["red", "50% _'x"] });
  await hub.addTask({ tags: ["redder", "50% y'x"], group: "red", title: "red" });
  await ok(hub.post("/task/update", { task_id: a, tags: ["green", "50% _'x"] }));
  await ok(hub.post("/task/cancel", { task_id: a }));
  const kindsOf = async (tag: string) => {
    const { events } = await ok(hub.get(`/events?since=0&tag=${encodeURIComponent(tag)}`));
    return list({ events }, "events").map(({ kind, task_id }) => (task_id === a ? kind : task_id));
  };
  expect(await kindsOf("red")).toEqual(["task.created"]);
  expect(await kindsOf("green")).toEqual(["task.updated", "task.failed"]);
  const kinds = ["task.created", "task.updated", "task.failed"];
  expect(await kindsOf("50% _'x")).toEqual(kinds);
  expect(await kindsOf("re")).toEqual([]);
  const streamed: unknown[] = [];
  for await (const { kind, data } of follow) {
    expect(String(data["tags"])).toContain("50% _'x");
    streamed.push(kind);
    if (kind === "task.failed") break;
  }
  stop.abort();
  expect(streamed).toEqual(kinds);
});
