/** Which lessons later workers read, and how many. */
import { CONTEXT_LESSONS_MAX, CONTEXT_LESSONS_MAX_BYTES } from "./limits.ts";

export type Lesson = {
  readonly taskId: string;
  readonly title: string;
  readonly taskType: string;
  readonly nodeId: string;
  readonly verified: boolean;
  readonly at: number;
  readonly text: string;
  /** The text is only the beginning: the result of the task has all of it. */
  readonly truncated: boolean;
};

/** What workers write who have nothing to say: every result must have a lesson. */
const NOTHING: readonly string[] = ["", "-", "n/a", "none"];

export function isLesson(text: string): boolean {
  return !NOTHING.includes(text.trim().replace(/\.$/, "").toLowerCase());
}

/** `lessons`: newest first. The last one that has room is cut, and of the same text the newest stays. */
export function withLesson(lessons: readonly Lesson[], lesson: Lesson): readonly Lesson[] {
  const others = lessons.filter(({ taskId }) => taskId !== lesson.taskId);
  const newestFirst = [...others, lesson].toSorted((a, b) => b.at - a.at || (a.taskId < b.taskId ? 1 : -1));
  const kept: Lesson[] = [];
  const texts = new Set<string>();
  let leftBytes = CONTEXT_LESSONS_MAX_BYTES;
  for (const candidate of newestFirst) {
    if (kept.length === CONTEXT_LESSONS_MAX || leftBytes === 0) break;
    if (texts.has(candidate.text)) continue;
    texts.add(candidate.text);
    const text = cutTo(leftBytes, candidate.text);
    if (text === "") break;
    leftBytes = text === candidate.text ? leftBytes - Buffer.byteLength(text) : 0;
    kept.push(text === candidate.text ? candidate : { ...candidate, text, truncated: true });
  }
  return kept;
}

/** Whole characters of UTF-8. */
function cutTo(bytes: number, text: string): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes));
  return text.slice(0, read);
}
