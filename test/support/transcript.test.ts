/** Transcripts find what is wrong: an expectation that does not hold fails, with its line and what stands there instead. */
import { expect, test } from "bun:test";
import { startHub } from "./hub.ts";
import { play } from "./transcript.ts";

const WRONG: readonly (readonly [line: string, says: string])[] = [
  ["task $t -> status assigned", 'status is "open", not "assigned"'],
  ["task $t -> {attempts: 0, failure: *}", ".failure is null, not there"],
  ["task $t -> title absent", 'title is "t", not absent'],
  ["task $t -> title ~x", 'title is "t", not ~x'],
  ["task $t -> task_id !$t", "not !"],
  ["task $t -> depends_on #1", "depends_on is [], not #1"],
  ["task $t -> priority 2..5", "priority is 1, not 2..5"],
  ["task $t -> created_at +60s", "not +60s"],
  ["GET task/list -> tasks.title [t, t]", 'tasks.title is ["t"], not a list of 2'],
  ["GET task/list -> tasks [{title: u}]", 'title is "t", not "u"'],
  ["GET task/list -> header.vary x", "header.vary is"],
  ["task/claim $t n1 -> 409 task_not_open", "node_not_found"],
  ["task/claim {task_id: 1} -> 400 node_id", "node_id"],
  ["task/create -> task.title u", "title"],
  ["task $x", "nothing is named $x"],
  ["batch\n+ task/cancel $t\n+ task/cancel $t -> 409 task_completed", "task_failed"],
  ["batch\n+ task/claim $t n1", "answered 404"],
  ['at once -> statuses {"200": 2}\n+ task/cancel $t\n+ task/cancel $t', "200 is 1, not 2"],
  ["key k task/create", "the answer is a replay"],
  ["replay key j task/create", "false"],
  ["replay key k task/create {title: u}", "Received: false"],
  ["task/update $t {title: x*3} -> task.title x*2", 'title is "xxx", not "xx"'],
  ["upload a.txt {task_id: $t} -> task_id !$t", "task_id is"],
  ["anon task/claim $t n1", "unauthorized"],
];

test.each(WRONG)("%s", async (line, says) => {
  await using hub = await startHub({ variants: ["A"] });
  const failure = await play(hub, `t = key k task/create\n${line}`).catch(String);
  expect(failure).toContain(line.split("\n")[0] ?? "");
  expect(failure).toContain(says);
});
