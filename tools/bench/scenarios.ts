// The measured scenarios: each is the cycle of requests that one connection, acting as one node, repeats.
// Invariant: the hub and the bare server are sent the same bytes, except for the task ids of the hub.
// Must not: have measuring code.
import { encodeRequest } from "./wire.ts";

const PREFIX = "/api/v1";

/** The placeholder of a task id that the hub has not made yet: as long as a UUID. */
export const PLACEHOLDER_ID = "00000000-0000-7000-8000-000000000000";

export type Step = {
  method: "GET" | "POST";
  path: string;
  body: ((nodeId: string, peerId: string) => object) | null;
  /** The answer carries the id that the later steps of the cycle use. */
  givesId?: true;
  /** Must be in the hub's answer; looked for in each connection's first cycles only, to stay cheap. */
  expect: string;
};

export type Scenario = {
  name: string;
  title: string;
  steps: readonly Step[];
  /** Each connection's node is registered first. */
  registers: boolean;
  /** What stands before the id in the answer that gives one, up to the quote. */
  idMark: string;
};

/** What the cycle of a task carries: the length of its prompt, by name. The longer ones have a result of 2 kB. */
export const WORKS = ["170 B", "4 kB", "16 kB"] as const;
export type Work = (typeof WORKS)[number];

export const TASK = {
  title: "Summarise the error log of the night run",
  description:
    "Read the log of the last night run, group the errors by their cause, count each group, " +
    "and propose for the three largest groups what to change so that they do not come again.",
  lux_reward: 2.5,
};

export const RESULT = {
  problem:
    "The import stopped after 4,100 rows: a date in the source had no time zone, and the parser gave up.",
  improvement:
    "Dates without a zone are now read as UTC, and a row that cannot be read is set aside and counted.",
  lesson: "One bad row must not stop a run: set it aside, go on, and report the number at the end.",
};

const LONG_RESULT_CHARS = 2_000;
const PROMPT_CHARS: Readonly<Record<Work, number>> = { "170 B": 0, "4 kB": 4_000, "16 kB": 16_000 };

/** `text`, again and again until it is so long; whole if it is longer. */
const repeated = (text: string, chars: number): string =>
  chars <= text.length ? text : `${text} `.repeat(Math.ceil(chars / text.length)).slice(0, chars);

export function taskOf(work: Work): typeof TASK {
  return { ...TASK, description: repeated(TASK.description, PROMPT_CHARS[work]) };
}

export function resultOf(work: Work): typeof RESULT {
  return work === "170 B" ? RESULT : { ...RESULT, problem: repeated(RESULT.problem, LONG_RESULT_CHARS) };
}

export const MESSAGE =
  "Part 7 of 12 is done: 4,100 rows read, 12 set aside, none lost. The next part starts when you have looked.";

const OF_HUB = { registers: true, idMark: '"task_id":"' } as const;

/** The name of a scenario with this work: "cycle", "cycle-4kB". */
export function nameWith(name: string, work: Work): string {
  return work === "170 B" ? name : `${name}-${work.replace(" ", "")}`;
}

function cycle(work: Work): Scenario {
  return {
    ...OF_HUB,
    name: nameWith("cycle", work),
    title: work === "170 B" ? "Task cycle" : `Task cycle, prompt of ${work}`,
    steps: [
      {
        method: "POST",
        path: `${PREFIX}/task/create`,
        body: () => taskOf(work),
        givesId: true,
        expect: '"task_id":"',
      },
      {
        method: "POST",
        path: `${PREFIX}/task/claim`,
        body: (nodeId) => ({ task_id: PLACEHOLDER_ID, node_id: nodeId }),
        expect: '"assigned"',
      },
      {
        method: "POST",
        path: `${PREFIX}/task/complete`,
        body: (nodeId) => ({ task_id: PLACEHOLDER_ID, node_id: nodeId, result: resultOf(work) }),
        expect: '"lux_paid":2.5',
      },
    ],
  };
}

export const SCENARIOS: readonly Scenario[] = [
  ...WORKS.map(cycle),
  {
    ...OF_HUB,
    name: "heartbeat",
    title: "Heartbeat",
    steps: [
      {
        method: "POST",
        path: `${PREFIX}/node/heartbeat`,
        body: (nodeId) => ({ node_id: nodeId }),
        expect: '"online"',
      },
    ],
  },
  {
    ...OF_HUB,
    name: "message",
    title: "Message",
    steps: [
      {
        method: "POST",
        path: `${PREFIX}/message/send`,
        body: (nodeId, peerId) => ({ from_node: peerId, to_node: nodeId, content: MESSAGE }),
        expect: '"message_id":"',
      },
      {
        method: "POST",
        path: `${PREFIX}/message/receive`,
        body: (nodeId) => ({ node_id: nodeId, count: 1 }),
        expect: MESSAGE,
      },
    ],
  },
  {
    ...OF_HUB,
    name: "list",
    title: "Task list",
    steps: [{ method: "GET", path: `${PREFIX}/task/list`, body: null, expect: '"total":1000' }],
  },
];

/** How many open tasks the list scenario finds in the hub. */
export const LISTED_TASKS = 1_000;

export function createTaskRequest(secret: string): Buffer {
  return encodeRequest("POST", `${PREFIX}/task/create`, secret, JSON.stringify(TASK));
}

export function registerRequest(secret: string, nodeId: string): Buffer {
  return encodeRequest(
    "POST",
    `${PREFIX}/node/register`,
    secret,
    JSON.stringify({ node_id: nodeId, name: `Bench ${nodeId}` }),
  );
}

/** A step's request for one node, with the place of the task id in it (-1: it has none). */
export type Template = { bytes: Buffer; idAt: number };

/** Encodes one step for one node, with `taskId` in the id's place, which may be in the path. */
export function encodeStep(
  step: Step,
  secret: string,
  nodeId: string,
  peerId: string,
  taskId: string,
): Template {
  const body = step.body === null ? null : JSON.stringify(step.body(nodeId, peerId));
  const fill = (text: string): string => text.replace(PLACEHOLDER_ID, () => taskId);
  const bytes = encodeRequest(step.method, fill(step.path), secret, body === null ? null : fill(body));
  const hasId = `${step.path}${body}`.includes(PLACEHOLDER_ID);
  return { bytes, idAt: hasId ? bytes.indexOf(taskId) : -1 };
}
