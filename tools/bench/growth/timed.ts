/**
 * The clients of output.ts and questions.ts: batches that fill a hub, and single requests that are timed. Must not know
 * what they fill it with.
 */
import type { Hub } from "../../../test/e2e/program.ts";
import { listOf } from "../../../test/e2e/program.ts";
import { whole } from "../markdown.ts";

const CALLERS = 16;
const REQUESTS = 4_000;

export type Call = { readonly path: string; readonly body: object };

/** As many as a busy machine decides in the time of one batch. */
const BATCH = 100;

/** Sends the requests in batches, and returns the task_id of each answer. @throws {Error} a request was refused */
export async function batch(hub: Hub, requests: readonly Call[]): Promise<readonly string[]> {
  const { body } = await hub.post("/batch", { requests: requests.slice(0, BATCH) });
  const answers = listOf(body["answers"]);
  const refused = answers.find(({ status }) => status !== 200);
  if (refused || answers.length === 0) throw new Error(JSON.stringify(refused ?? body));
  const ids = answers.map((answer) => String(Object(answer["body"]).task_id));
  return requests.length <= BATCH ? ids : [...ids, ...(await batch(hub, requests.slice(BATCH)))];
}

/** Calls from CALLERS connections at once, in milliseconds, in order of length. @throws {Error} a call was refused */
export async function timed(
  call: (n: number) => Promise<{ readonly status: number }>,
): Promise<readonly number[]> {
  const times: number[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    for (let n = next++; n < REQUESTS; n = next++) {
      const begunAt = performance.now();
      const { status } = await call(n);
      if (status !== 200) throw new Error(`a request was answered ${status}`);
      times.push(performance.now() - begunAt);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, work));
  return times.toSorted((a, b) => a - b);
}

export function row(name: string, stored: number, times: readonly number[]): string {
  const at = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  return `| ${name} | ${whole(stored)} | ${at(0.5)} / ${at(0.99)} |`;
}
