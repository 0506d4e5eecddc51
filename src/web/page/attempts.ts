/** The attempts of a task, made from its events. Pure. */
import type { Event } from "../../client/luxhub.ts";

type Tone = "good" | "bad" | "wait" | "busy" | "quiet";

export type Attempt = {
  /** Of the dispatches of the task, from 1 on. */
  readonly number: number;
  readonly node: string;
  readonly from: number;
  readonly to: number | null;
  readonly word: string;
  readonly tone: Tone;
  readonly text: string;
  readonly notes: readonly { readonly at: number; readonly text: string }[];
};

const ENDS: Readonly<Partial<Record<Event["kind"], readonly [word: string, tone: Tone]>>> = {
  "task.completed": ["completed", "good"],
  "task.attempt_failed": ["failed", "bad"],
  "task.timed_out": ["timed out", "wait"],
  "task.requeued": ["node offline", "wait"],
  "task.revoked": ["taken back", "wait"],
  "task.released": ["given back", "quiet"],
  "task.failed": ["ended", "bad"],
};

export function attemptsOf(events: readonly Event[]): readonly Attempt[] {
  const attempts: Attempt[] = [];
  const change = (more: (running: Attempt) => Partial<Attempt>): void => {
    const last = attempts.at(-1);
    if (last?.to === null) attempts[attempts.length - 1] = { ...last, ...more(last) };
  };
  for (const { kind, at, node_id, data } of events) {
    const time = Date.parse(at);
    const ending = ENDS[kind];
    if (kind === "task.assigned") {
      const word = data["by"] === "resume" ? "worker restarted" : "handed on";
      change(() => ({ to: time, word, tone: "quiet" }));
      const node = node_id ?? "";
      const number = attempts.length + 1;
      attempts.push({
        number,
        node,
        from: time,
        to: null,
        word: "running",
        tone: "busy",
        text: "",
        notes: [],
      });
    } else if (kind === "task.progress") {
      change(({ notes }) => ({ notes: [...notes, { at: time, text: String(data["note"] ?? "") }] }));
    } else if (ending !== undefined) {
      const [word, tone] = ending;
      const text = String(data["error"] ?? data["message"] ?? data["reason"] ?? "");
      const isFailed = kind === "task.failed";
      change(() => ({ to: time, word: isFailed ? String(data["kind"] ?? word) : word, tone, text }));
    }
  }
  return attempts;
}
