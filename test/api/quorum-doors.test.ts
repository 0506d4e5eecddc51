/** What nobody sees of a quorum before it is decided (quorum-secrets.test.ts), through webhooks and MCP. */
import { expect, test } from "bun:test";
import { type TestHub, startHub } from "../support/hub.ts";
import { Agent } from "../support/mcp.ts";
import { RECEIVER_URL, type Received, Receiver } from "../support/receiver.ts";
import { play } from "../support/transcript.ts";
import { ok } from "./scene.ts";

const LIE = "the-moon-is-made-of-cheese";

/** One of the copies, which `a` has taken; its id. */
async function copyOf(hub: TestHub): Promise<string> {
  const names = await play(
    hub,
    `nodes a b {auto_assign: false}
    q = task/create {quorum: {results: 2, of: 3}}
    until task $q -> quorum.copies #2
    task/next a
    q = task $q`,
  );
  const { quorum } = names.get("q") as { quorum: { copies: readonly string[] } };
  return quorum.copies[0] ?? "";
}

test("the result of a copy is in no webhook, also in the format of A2A", async () => {
  await using receiver = new Receiver();
  await using hub = await startHub({ post: receiver.post });
  for (const format of ["a2a", "luxhub"]) {
    const hook = { name: format, url: `${RECEIVER_URL}/${format}`, format };
    await ok(hub.admin("/webhook/put", { ...hook, kinds: ["task.completed"] }));
  }
  const copy = await copyOf(hub);
  await play(hub, `task/complete $copy a {result: {output: ${LIE}}}`, { copy });
  const ofCopy = ({ text }: Received): boolean => text.includes(copy);
  await receiver.until((received) => received.filter(ofCopy).length >= 2);
  for (const { text } of receiver.received) expect(text).not.toContain(LIE);
});

test("the error of a copy is in no result of MCP", async () => {
  await using hub = await startHub();
  const copy = await copyOf(hub);
  await play(hub, `task/fail $copy a {error: ${LIE}, retry: false}`, { copy });
  await using agent = await Agent.connect(hub.base(), "b", "2026-07-28");
  for (const [tool, args] of [
    ["task_get", { task_id: copy }],
    ["task_list", {}],
    ["task_list", { status: "failed" }],
  ] as const) {
    const { text, data } = await agent.call(tool, args);
    expect([tool, `${text} ${JSON.stringify(data)}`.includes(LIE)]).toEqual([tool, false]);
  }
});
