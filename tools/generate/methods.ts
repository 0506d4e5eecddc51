/**
 * Names the methods of both clients: the method of an operation follows from its path ("note/put" is `notes.put`), except for
 * those that are named here.
 */
import { type Described, operations } from "./client-types.ts";

/** What users would not look for under the name of the path. */
const NAMED: Readonly<Record<string, string>> = {
  "stats/nodes": "nodes.stats",
  "stats/types": "tasks.byType",
  "stats/failures": "tasks.failures",
  "task/list?fields=summary": "tasks.summaries",
  "task/{task_id}/output": "tasks.readOutput",
  reviews: "tasks.inReview",
  lessons: "tasks.lessons",
  questions: "tasks.openQuestions",
  "agent/messages": "messages.mailbox",
  signin: "lux.signIn",
  usage: "costs.usage",
  "usage/void": "costs.voidUsage",
  "budget/set": "costs.setBudget",
  "budget/list": "costs.budgets",
  "budget/delete": "costs.deleteBudget",
  "hub/pause": "limits.pause",
  "hub/resume": "limits.resume",
  "hub/pauses": "limits.pauses",
};

/** Methods that are written by hand, and other names of an operation. */
const WITHOUT_METHOD: readonly string[] = [
  "agent/message",
  "agent/broadcast",
  "agent/ack",
  "status",
  "pg/diagnostic",
  "stats/minutes",
  "events",
  "poll",
  "batch",
  "openapi.json",
  "join",
  "standby/invite",
  "promote",
  "copy/changes",
  "copy/promoted",
  "task/answer-by-token",
  "file/{file_id}",
];

const LONG_WAIT = "Waits for `wait` seconds, however long that is";

export const NOTES: Readonly<Record<string, string>> = {
  "node/list": "All nodes; with any of the fields, a page.",
  "task/list?fields=summary": "The tasks without their descriptions, results and other long texts.",
  "task/next": `${LONG_WAIT}.`,
  "task/{task_id}": `${LONG_WAIT}.`,
  "task/{task_id}/output": `${LONG_WAIT}, for more output.`,
  "task/{task_id}/questions": "With `wait` it waits, at most 300 seconds, until one changes.",
  "task/output": "The handler of a worker has `output`, which keeps the offsets.",
  "group/{group}": `${LONG_WAIT}, until no task is unfinished.`,
  "group/cancel": "Cancels up to 1,000 tasks: repeat it while `left` is not 0.",
  "group/retry": "Opens up to 1,000 tasks: repeat it with `next_cursor` while there is one.",
  "task/ask": `${LONG_WAIT}.`,
  "task/wait": `${LONG_WAIT}.`,
  "message/receive": "With `blocking` it waits for `timeout` seconds, however long that is.",
  "invitation/create": "Not repeated after a fault: only its answer has the line.",
  "webhook/put": "Not repeated after a fault: the hub shows a secret only once.",
  "key/add": "Not repeated after a fault: the hub keeps no secret that it could answer again.",
};

function nameOf(operation: string): string {
  const [resource = "", ...segments] = operation.split("/");
  const last = segments.at(-1) ?? "";
  const method = last.startsWith("{")
    ? "get"
    : last.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  return `${resource === "lux" ? "lux" : `${resource}s`}.${method}`;
}

export function methodsByResource(): ReadonlyMap<string, ReadonlyMap<string, Described>> {
  const resources = new Map<string, Map<string, Described>>();
  for (const operation of operations()) {
    if (WITHOUT_METHOD.includes(operation.name)) continue;
    const [resource = "", method = ""] = (NAMED[operation.name] ?? nameOf(operation.name)).split(".");
    const methods = resources.get(resource) ?? new Map<string, Described>();
    if (methods.has(method))
      throw new Error(`${resource}.${method} names two operations: name one in methods.ts`);
    resources.set(resource, methods.set(method, operation));
  }
  return resources;
}
