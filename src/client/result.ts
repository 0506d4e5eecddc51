/**
 * The result of a task, made of whatever a handler, a command or an agent gives: an object with `problem`,
 * `improvement`, `lesson` or `output` is the result, anything else is its `output`. Missing texts are filled in; an
 * output that is too large becomes a file. Must not: drop anything that was given.
 */
import { toJson } from "./json.ts";
import type { TaskResult } from "./types.ts";

/** The hub takes so much in each of the three texts, and in all other fields together. */
const TEXT_MAX_BYTES = 64 * 1024;
const EXTRA_MAX_BYTES = 64 * 1024;
/** Room for output_file and output_note next to a cut output. */
const NOTE_BYTES = 1_024;
const LINE_MAX_CHARS = 1_000;
const TEXTS = ["problem", "improvement", "lesson"] as const;

/** @param said what was done, if the result does not say it */
export function resultOf(value: unknown, title: string, said = ""): TaskResult {
  const { problem, improvement, lesson, ...extra } = fieldsOf(value) ?? { output: value ?? null };
  return {
    problem: isSaid(problem) ? problem : title,
    improvement: isSaid(improvement) ? improvement : isSaid(said) ? said : sentenceOf(extra),
    lesson: isSaid(lesson) ? lesson : "none",
    ...extra,
  };
}

export function isSaid(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

export function firstLineOf(text: string): string {
  const line = /\S.*/.exec(text)?.[0].trimEnd() ?? "no output";
  return line.length > LINE_MAX_CHARS ? `${line.slice(0, LINE_MAX_CHARS).toWellFormed()}…` : line;
}

/** Null: the value has none of the fields of a result, or a text that is none. */
function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const fields: Readonly<Record<string, unknown>> = { ...value };
  const texts = TEXTS.map((name) => fields[name] ?? null).filter((text) => text !== null);
  const isResult = texts.length > 0 || "output" in fields;
  return isResult && texts.every((text) => typeof text === "string") ? fields : null;
}

function sentenceOf({ output }: { readonly output?: unknown }): string {
  if (typeof output === "string") return firstLineOf(output);
  if (output === undefined) return "done";
  if (output === null) return "no output";
  return typeof output === "object" ? "done" : String(output);
}

/** What a command has printed: its first bytes, how many there were, and whether they are UTF-8 without NUL. */
export type Content = {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly total: number;
  readonly isText: boolean;
};
export type UploadOutput = (content: Uint8Array<ArrayBuffer>, name: string, type: string) => Promise<string>;

/**
 * Returns the result as the hub takes it: an output that is too large, or has bytes that no string can have, is
 * uploaded, and only its beginning stays.
 */
export async function fitted(
  { problem, improvement, lesson, ...extra }: TaskResult,
  upload: UploadOutput,
  given?: Content,
): Promise<TaskResult> {
  const texts = { problem, improvement, lesson };
  const isWhole = given === undefined || given.bytes.length === given.total;
  const areFitting = Object.values(texts).every((text) => encoder.encode(text).length <= TEXT_MAX_BYTES);
  const isBinary = given?.isText === false;
  if (isWhole && !isBinary && areFitting && bytesOf(extra) <= EXTRA_MAX_BYTES) return { ...texts, ...extra };
  const { output, ...others } = extra;
  const isText = typeof output === "string" && areFitting && Object.keys(others).length === 0;
  const bytes = given?.bytes ?? encoder.encode(isText ? output : toJson({ ...texts, ...extra }));
  const [name, type] = isBinary
    ? ["output.bin", "application/octet-stream"]
    : isText
      ? ["output.txt", "text/plain"]
      : ["output.json", "application/json"];
  const file = await upload(bytes, name, type);
  const missing = isWhole ? "" : ` up to byte ${bytes.length}`;
  return {
    problem: cut(problem, TEXT_MAX_BYTES),
    improvement: cut(improvement, TEXT_MAX_BYTES),
    lesson: cut(lesson, TEXT_MAX_BYTES),
    // JSON that is too large is not cut: a part of it is not JSON.
    ...(isText && { output: cut(output, EXTRA_MAX_BYTES - NOTE_BYTES) }),
    output_file: file,
    output_note: `The output has ${given?.total ?? bytes.length} bytes, ${isBinary ? "and is not UTF-8" : "too many for a result"}: file ${file} has them${missing}.`,
  };
}

const encoder = new TextEncoder();

/** The size as JSON, which may be longer than the text. */
function bytesOf(value: unknown): number {
  return encoder.encode(toJson(value)).length;
}

/** Cuts a text so that it has at most `maxBytes` bytes as JSON. */
function cut(text: string, maxBytes: number): string {
  let end = maxBytes;
  for (;;) {
    const part = end >= text.length ? text : `${text.slice(0, end).toWellFormed()}…`;
    const bytes = bytesOf(part);
    if (bytes <= maxBytes) return part;
    end = Math.floor(Math.min(end, text.length) * Math.min(0.99, maxBytes / bytes));
  }
}
