/** The refusals of calls: what is wrong, and what to do next, which is a tool and never an endpoint of HTTP. */
import { problemOf } from "../api/error-table.ts";
import type { JsonObject } from "../http/json-body.ts";
import { type FieldError, invalidRequest } from "../http/problem.ts";
import { causeOf } from "../lib/log.ts";
import { type ToolResult, brief } from "./result.ts";
import { Refused, type Session } from "./session.ts";
import { recordsOf } from "./shapes.ts";

const SAID_MAX_BYTES = 6_000;
const TAKE_ANOTHER = "Call task_next for another task.";
const DROP_IT = "Drop it and call task_next.";

/** What to do after a refusal, by its code; by the code and the tool where that depends on who asks. */
const ADVICE: Readonly<Record<string, string>> = {
  task_not_found: "Check the task_id: task_list shows the tasks.",
  task_not_open: `Another node has it. ${TAKE_ANOTHER}`,
  task_not_ready: `task_get shows what it waits for. ${TAKE_ANOTHER}`,
  "task_not_ready task_create": "",
  task_not_assigned: "You do not hold it. Call task_next {task_id} first, or task_next for another task.",
  not_assigned_to_node: `You do not hold it. ${DROP_IT}`,
  stale_lease: `You have lost it meanwhile. ${DROP_IT}`,
  task_completed: "task_get shows its result.",
  "task_completed task_fail": "You completed it; that stands.",
  "task_completed task_release": "You completed it; that stands.",
  "task_completed task_cancel": "There is nothing to cancel; task_get shows its result.",
  task_failed: `It has ended. ${DROP_IT}`,
  "task_failed task_cancel": "There is nothing to cancel; task_get shows why it failed.",
  "task_failed task_next": `task_retry opens it again. ${TAKE_ANOTHER}`,
  not_in_review: "task_get shows how it stands.",
  task_not_failed: "task_get shows how it stands.",
  node_offline: "Leave node_id out, or name a node of node_list {online: true}.",
  node_draining: "Finish what you hold; node_update {drain: false} ends the drain.",
  "node_draining task_create": "It takes no new tasks. Leave node_id out, or name another node of node_list.",
  node_not_found: "node_list shows the nodes.",
  "node_not_found mail_send": 'node_list shows the nodes; to_node "*" is all that are online.',
  message_not_found: "mail_check {all: true} shows your messages.",
  not_your_message: "Name only messages that mail_check showed to you.",
  file_not_found: "file_get without file_id lists the files, and task_get those of a task.",
  note_not_found: "note {action: list} shows the keys.",
  notes_limit: "Delete notes that nobody needs, with action delete.",
  leases_limit: "Release what you no longer need.",
  key_bound_to_other_node: "Your key may not do this for another node: tell your user.",
  key_not_bound: "Tell your user: this hub wants a key that is bound to your node.",
  question_not_found: "task_get shows the questions of the task in context.answers.",
  question_answered: "task_get shows the answer in context.answers.",
  questions_limit: "Go on without another question.",
  verdict_missing: 'Send output {"verdict": "pass"} or {"verdict": "reject", "note": "what is wrong"}.',
  compared_value_missing: "Send result again with the value that it names.",
  task_sealed: "Decide it yourself, and put everything into result.",
  node_excluded: TAKE_ANOTHER,
  task_files_limit: "Put several files into one archive.",
  usage_limit: "Send this again without usage.",
  budget_exceeded: "Tell your user: its budget is used up.",
  idempotency_key_reused: `You have ended this attempt before, in other words, and those stand. ${TAKE_ANOTHER}`,
  outcome_unknown: "Check with task_get or task_list whether it took effect before you call again.",
};

/** Of what went wrong. A fault of the hub is logged, and its caller learns only where to find it. */
export function refusalOf({ call }: Session, tool: string, error: unknown): ToolResult {
  let body = error instanceof Refused ? error.body : problemOf(error)?.toJSON();
  if (body === undefined) {
    const { requestId } = call.exchange;
    call.log.error("request failed", { request_id: requestId, cause: causeOf(error) });
    const detail = `The hub failed to process this call. Call again; if it fails again, give your user the request id ${requestId}.`;
    body = { error: "internal_error", detail };
  }
  return refusalIn(body, tool);
}

/** A refusal of an endpoint, in words for the one who called the tool. */
export function refusalIn(body: JsonObject, tool: string): ToolResult {
  const { error: code, detail } = inArguments(body);
  const advice = ADVICE[`${String(code)} ${tool}`] ?? ADVICE[String(code)] ?? "";
  // Its detail is about a header, which the caller did not send: the tool did (giveBack() of task-tools.ts).
  const told = code === "idempotency_key_reused" ? [] : withoutPaths(String(detail));
  const sentences = [...told, advice].filter((sentence) => sentence !== "");
  return { say: brief(sentences.join(" "), SAID_MAX_BYTES), error: code };
}

/** The sentences that name no endpoint of HTTP. */
function withoutPaths(detail: string): readonly string[] {
  return detail.split(/(?<=\.) /).filter((sentence) => !sentence.includes("/api/v1/"));
}

/** Arguments whose field of HTTP has another name. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  wait: "wait_s",
  per_page: "limit",
  for_node: "node_id",
  result: "output", // its texts have names of their own
};

const LARGER = ", or be a file: file_put {task_id}";

function inArguments(body: JsonObject): JsonObject {
  if (body["error"] !== "invalid_request") return body;
  const named = recordsOf(body["errors"]).map((error): FieldError => {
    const field = String(error["path"]).replace(/^result\./, "");
    const path = ARGUMENTS[field] ?? field;
    return { path, message: `${String(error["message"])}${path === "output" ? LARGER : ""}` };
  });
  return named.length === 0 ? body : invalidRequest(named).toJSON();
}
