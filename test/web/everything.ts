/** A hub with some of everything that an operator sees: tasks that are held back for each reason, and what waits for a person. */
import { expect } from "bun:test";
import { HELD_CODES } from "../../src/domain/held.ts";
import { STATS_KEPT_MS } from "../../src/domain/limits.ts";
import { RESULT, list, ok } from "../api/scene.ts";
import type { TestHub } from "../support/hub.ts";

export async function someOfEverything(hub: TestHub): Promise<void> {
  const nodes = { crawl: 3, mail: 2, ocr: 2, bill: 1 };
  for (const [type, count] of Object.entries(nodes))
    for (let i = 1; i <= count; i++) await hub.addNode(`${type}-0${i}`, { capabilities: [type] });
  await hub.addNode("ops");
  await hub.addNode("drained", { capabilities: ["archive"] });
  await hub.addNode("off", { capabilities: ["sleep"] });
  await ok(hub.post("/node/drain", { node_id: "drained", drain: true }));
  await ok(hub.post("/node/drain", { node_id: "ops", drain: true }));
  await ok(hub.post("/node/leave", { node_id: "off" }));
  await ok(hub.post("/node/leave", { node_id: "ops" }));
  const hold = (node_id: string, fields: Readonly<Record<string, unknown>>): Promise<string> =>
    hub.addTaskOf(node_id, { task_type: node_id.replace(/-\d+$/, ""), ...fields });
  // What the gate closes is begun before.
  await ok(hub.admin("/limit/set", { key: "crawl", running: 2 }));
  for (const node of ["crawl-01", "crawl-02"]) await hold(node, { title: `Crawl at ${node}` });
  await hub.addTasks(7, { title: "Crawl a page", task_type: "crawl" });
  await ok(hub.admin("/limit/set", { key: "provider", per_minute: 10 }));
  const rated = await hold("ocr-02", { limit_key: "provider" });
  await ok(hub.post("/task/release", { task_id: rated, node_id: "ocr-02", hold_s: 600 }));
  await hub.addTasks(2, { task_type: "ocr", limit_key: "provider" });
  await ok(hub.admin("/budget/set", { scope: "type", value: "bill", per: "day", cost_usd: 0.5 }));
  const usage = [{ seq: 1, model: "m", input_tokens: 9, output_tokens: 9, cost_usd: 0.7 }];
  const bill = await hold("bill-01", { title: "Send the bills" });
  await ok(hub.post("/task/complete", { task_id: bill, node_id: "bill-01", result: RESULT, usage }));
  await hub.addTasks(3, { task_type: "bill" });
  await hub.addTasks(4, { title: "Send a letter", task_type: "mail" });
  await ok(hub.admin("/hub/pause", { type: "mail", reason: "The relay is blocked, OPS-4411" }));
  await ok(hub.admin("/hub/pause", { creator_node: "ops" }));
  await hub.addTasks(2, { task_type: "ocr", creator_node: "ops" });
  await hub.addTasks(5, { title: "Render a scene", task_type: "render3d" });
  await hub.addTask({ task_type: "ocr", requires: { resources: { gpu: 8 } } });
  await hub.addTasks(2, { task_type: "sleep" });
  await hub.addTasks(1, { task_type: "archive" });
  await hub.addTasks(2, { task_type: "ocr", delay_s: 3_600 });
  const first = await hub.addTask({ title: "Read page 1", task_type: "ocr" });
  await hub.addTask({ title: "Read page 2", task_type: "ocr", depends_on: [first] });
  await hub.addTask({ task_type: "ocr", quorum: { results: 2, of: 2, compare: "output" } });
  // What waits for a person.
  const asked = await hold("ocr-01", { title: "Tidy up old branches" });
  const question = { task_id: asked, node_id: "ocr-01", question: "May I delete the branch release/2024.1?" };
  await ok(hub.post("/task/ask", { ...question, park: true, within_s: 7_200 }));
  const running = await hold("crawl-03", {
    title: "Crawl www.captcha.example",
    group: "sites",
    limit_key: "sites",
  });
  await ok(
    hub.post("/task/extend", { task_id: running, node_id: "crawl-03", note: "97 of 140 pages, then 403" }),
  );
  const choices = ["Wait an hour", "Skip", "Ask the owner"];
  await ok(
    hub.post("/task/ask", {
      ...{ task_id: running, node_id: "crawl-03", choices, within_s: 240 },
      question: "The page asks for a captcha. Should I wait, skip it, or ask the owner?",
    }),
  );
  for (let i = 0; i < 3; i++) {
    const fields = {
      title: `Draft the answer to complaint #440${i}`,
      lux_reward: 5,
      review: "creator",
      group: "complaints",
    };
    const task_id = await hold("ocr-02", { ...fields, review_within_s: 86_400 * (i + 1) });
    const output = { letter: "Dear Ms Doe,\n\nwe are sorry.\n\nKind regards", confidence: 0.83 };
    await ok(hub.post("/task/complete", { task_id, node_id: "ocr-02", result: { ...RESULT, output } }));
  }
  // What has ended.
  for (let i = 0; i < 6; i++) {
    const task_id = await hold("ocr-02", { title: `Read scan ${i}`, group: "scans" });
    await ok(
      hub.post("/task/fail", { task_id, node_id: "ocr-02", error: `PDF ${i} is encrypted`, retry: false }),
    );
  }
  const again = await hold("ocr-02", { title: "Failed, and was retried" });
  await ok(hub.post("/task/fail", { task_id: again, node_id: "ocr-02", error: "Once", retry: false }));
  await ok(hub.post("/task/retry", { task_id: again }));
  for (const task_id of await hub.addTasks(3, { task_type: "ocr", group: "scans" }))
    await ok(hub.post("/task/cancel", { task_id }));
  const gone = await hold("ocr-02", {});
  await ok(hub.complete(gone, "ocr-02"));
  await ok(hub.admin("/task/delete", { task_id: gone }));
  hub.clock.pass(STATS_KEPT_MS);
  const held = list(await ok(hub.get("/stats/types")), "held");
  expect(held.map(({ code }) => String(code)).toSorted()).toEqual([...HELD_CODES].toSorted());
}
