/** The tools of questions: a worker asks about its task, and somebody answers. */
import type { JsonObject } from "../http/json-body.ts";
import type { Args } from "./arguments.ts";
import type { ToolResult } from "./result.ts";
import { type Session, once } from "./session.ts";
import { questionDetail, recordOf, recordsOf } from "./shapes.ts";

const REPEATED = "You asked this before: it is the same question. To ask again, use other words. ";

/** Waits in a second call: a repeat of the first one is answered from the store, as the question was then. */
export async function taskAsk(session: Session, args: Args): Promise<ToolResult> {
  const { wait_s = session.maxWait, ...fields } = args;
  const request = { ...fields, node_id: session.self };
  const answer = await session.ask("POST", "task/ask", request, once(session, fields));
  const { task_id, question_id } = recordOf(answer["question"]);
  const wait = args["park"] === true ? 0 : session.waitFor(wait_s);
  const query = { task_id, question_id, wait: String(wait) };
  const { questions } = await session.ask("GET", "task/:task_id/questions", query);
  const question = recordOf(recordsOf(questions)[0]);
  const isRepeated = answer["repeated"] === true && question["state"] !== "open";
  const say = `${isRepeated ? REPEATED : ""}${sayOf(question, args["park"] === true)}`;
  return { say, task_id, question: questionDetail(question) };
}

function sayOf({ state }: JsonObject, isParked: boolean): string {
  if (state === "answered") return "Here is the answer: go on with your task.";
  if (state === "timed_out") return "There was no answer in time: decide yourself, or end the task.";
  if (isParked) return "The task is parked until there is an answer; you no longer hold it. Call task_next.";
  return "No answer yet. Make the same call again to wait on, or with park: true to give the task back until there is one.";
}

export async function taskAnswer(session: Session, args: Args): Promise<ToolResult> {
  const { task_id, question_id } = args;
  const answer = session.exactArgument("answer");
  const request = { task_id, question_id, answer, node_id: session.nodeId };
  const { question } = await session.ask("POST", "task/answer", request);
  return { say: "Answered: its worker goes on.", question: questionDetail(recordOf(question)) };
}
