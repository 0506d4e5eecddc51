/** What limits a key also limits an agent of MCP that has it: the right to mint, quotas, --strict. */
import { expect, test } from "bun:test";
import { SECRET, startHub } from "../support/hub.ts";
import { Agent, ERAS } from "../support/mcp.ts";
import { play } from "../support/transcript.ts";
import { addKey, as } from "./key-commands.ts";
import { RESULT, ok, record } from "./scene.ts";

const NEW = { title: "t", description: "d" };
const [, ERA = "2026-07-28"] = ERAS;

test.each(ERAS)("%s: the right to mint bounds what it promises; a repeated call counts once", async (era) => {
  await using hub = await startHub();
  await hub.addNode("n1");
  const secret = await addKey(hub, "ten", { mint_per_day: 10 });
  const headers = { "X-Matrix-Secret": secret, "X-Node-Id": "n1" };
  await using agent = await Agent.connect(hub.base(), "n1", era, headers);
  const six = { ...NEW, lux_reward: 6, key: "six" };
  const first = record((await agent.ok("task_create", six))["task"])["task_id"];
  const again = await agent.ok("task_create", six);
  expect([record(again["task"])["task_id"], again["repeated"]]).toEqual([first, true]);
  const five = { ...NEW, lux_reward: 5, key: "five" };
  for (let tries = 0; tries < 2; tries++)
    expect(await agent.call("task_create", five)).toMatchObject({
      isError: true,
      data: { error: "mint_limit" },
    });
  await agent.ok("task_create", { ...NEW, lux_reward: 4, key: "four" });
  await agent.ok("task_create", { ...NEW, key: "none" });
  await play(hub, "as $ten task/create {lux_reward: 0.000001} -> 403 mint_limit\nGET task/list -> total 3", {
    ten: { secret },
  });
});

test("a quota says what to do", async () => {
  await using hub = await startHub({ quotaTasks: 1 });
  await hub.addNode("n1");
  const headers = { "X-Matrix-Secret": await addKey(hub, "k", { node_id: "n1" }) };
  await using agent = await Agent.connect(hub.base(), "n1", ERA, headers);
  await agent.ok("task_create", NEW);
  const told = await agent.call("task_create", { ...NEW, title: "other" });
  expect([told.isError, told.data["error"]]).toEqual([true, "quota_exceeded"]);
  expect(told.text).toContain("--quota-tasks");
});

test("a strict hub takes an agent at its key", async () => {
  await using hub = await startHub({ isStrict: true });
  const n1 = await addKey(hub, "n1", { node_id: "n1" });
  await ok(hub.post("/node/register", { node_id: "n1", name: "n1" }, as(n1)));
  await using impostor = await Agent.connect(hub.base(), "n1");
  expect(await impostor.refused("task_next")).toBe("key_not_bound");
  await using creator = await Agent.connect(hub.base(), "", ERA, { "X-Matrix-Secret": SECRET });
  await creator.ok("task_create", NEW);
  await using agent = await Agent.connect(hub.base(), "n1", ERA, { "X-Matrix-Secret": n1 });
  const { task_id } = record((await agent.ok("task_next"))["task"]);
  await agent.ok("task_complete", { task_id, ...RESULT });
  expect(await creator.ok("task_get", { task_id })).toMatchObject({ task: { result_verified: true } });
});
