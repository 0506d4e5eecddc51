/** `luxhub group …`: shows a group of tasks, and follows, cancels and retries its tasks as one. */
import type { AnswerOf } from "../client/luxhub.ts";
import { SECOND_MS, systemClock } from "../lib/clock.ts";
import { EXIT } from "./exit-codes.ts";
import { type Remote, type ClientRuns, printError, recordOf } from "./remote.ts";
import { writeLine } from "./standard-output.ts";
import { plain, print, printJson, printRecord, printTable, printText, truncateToTerminal } from "./table.ts";

export const RUNS: ClientRuns = {
  "group watch": watch,
  "group show": async ({ hub, json, words: [group = ""] }) => {
    const answer = recordOf(await hub.groups.get({ group }));
    if (json) printJson(answer);
    else show(answer);
    return EXIT.OK;
  },
  "group cancel": async ({ hub, json, values, words: [group = ""] }) => {
    const request = { group, node_id: values.text("node"), reason: values.text("reason") };
    let cancelled = 0;
    for (;;) {
      const step = await hub.groups.cancel(request);
      cancelled += step.cancelled;
      if (step.left === 0 || step.cancelled === 0) break;
    }
    return report(json, { group, cancelled });
  },
  "group retry": async ({ hub, json, words: [group = ""] }) => {
    let retried = 0;
    for (let cursor: string | undefined; ;) {
      const step = await hub.groups.retry({ group, cursor });
      retried += step.retried;
      if (step.next_cursor === null) break;
      cursor = step.next_cursor;
    }
    return report(json, { group, retried });
  },
};

type Group = AnswerOf<"group/{group}">;
type Listed = AnswerOf<"group/list">["groups"][number];
/** By the words of either variant. */
type Counted = Pick<Listed, "total" | "unfinished" | "in_review" | "cancelled"> & {
  readonly by_status: Readonly<Record<string, number>>;
};

async function report(json: boolean, done: Readonly<Record<string, string | number>>): Promise<number> {
  if (json) printJson(done);
  else {
    const [[, group] = [], [what, count] = []] = Object.entries(done);
    await writeLine(`${group}  ${count} ${what}`);
  }
  return EXIT.OK;
}

function show({ failures, by_status, usage, ...group }: ReturnType<typeof recordOf<Group>>): void {
  const { input_tokens, output_tokens, cost_usd } = usage ?? {};
  printRecord({ ...group, ...by_status, ...(usage && { input_tokens, output_tokens, cost_usd }) });
  if (failures.length === 0) return;
  print("");
  printTable(
    ["FAILED TASK", "KIND", "TITLE", "MESSAGE"],
    failures.map(({ task_id, title, failure }) => [task_id, failure?.kind, title, failure?.message]),
  );
}

const TERMINAL_WAIT_S = 1;
const LINE_WAIT_S = 5;
const CLEAR_LINE = "\r\x1b[K";
const FOR_EVER_S = 10 * 365 * 86_400;

async function watch({ hub, values, json, words: [group = ""] }: Remote): Promise<number> {
  const state = await followGroup(hub, group, !json, values.seconds("timeout"));
  if (json) printJson(recordOf(state));
  return exitCodeOfGroup(state, values.text("timeout"));
}

export async function followGroup(
  hub: Remote["hub"],
  group: string,
  isShown: boolean,
  timeoutS = FOR_EVER_S,
): Promise<Group> {
  const clock = systemClock();
  const until = clock.steady() + timeoutS * SECOND_MS;
  const isTerminal = process.stdout.isTTY === true && isShown;
  // Fails if the hub or the group does not exist; the next calls wait for a hub that is away.
  let state = await hub.groups.get({ group });
  let shown = "";
  for (;;) {
    const line = progressOf(state);
    if (isTerminal) printText(`${CLEAR_LINE}${truncateToTerminal(line)}`);
    else if (isShown && line !== shown) print(line);
    shown = line;
    const leftS = (until - clock.steady()) / SECOND_MS;
    if (state.done || leftS <= 0) break;
    const wait = Math.min(isTerminal ? TERMINAL_WAIT_S : LINE_WAIT_S, leftS);
    state = await hub.groups.get({ group, wait }, { retry: { forMs: leftS * SECOND_MS } });
  }
  if (isTerminal) print("");
  return state;
}

/** `timeout`: how long it was followed. */
export function exitCodeOfGroup(state: Group, timeout?: string): number {
  const { cancelled = 0, total } = state;
  const { failed = 0 } = state.by_status;
  if (!state.done) {
    printError(`after ${timeout} ${state.unfinished} of ${total} tasks are unfinished`);
    return EXIT.TIMED_OUT;
  }
  if (failed + cancelled === 0) return EXIT.OK;
  printError(`${failed} of ${total} tasks failed${cancelled === 0 ? "" : `, ${cancelled} were cancelled`}`);
  return EXIT.FAILED;
}

const BAR_CHARS = 30;

/** `[#####.....] 120/200 (60%), 8 running, 3 failed`. Variant B does not say which tasks run. */
export function progressOf({ total, unfinished, in_review = 0, cancelled = 0, by_status }: Counted): string {
  const { assigned, failed = 0 } = by_status;
  const ended = total - unfinished;
  const full = Math.floor((BAR_CHARS * ended) / total);
  const percent = Math.floor((100 * ended) / total);
  const bar = "#".repeat(full) + ".".repeat(BAR_CHARS - full);
  const running = assigned === undefined ? "" : `, ${assigned} running`;
  const inReview = in_review === 0 ? "" : `, ${in_review} in review`;
  const ofCancelled = cancelled === 0 ? "" : `, ${cancelled} cancelled`;
  return plain(
    `[${bar}] ${ended}/${total} (${percent}%)${running}${inReview}, ${failed} failed${ofCancelled}`,
  );
}
