/** Compares results by values in them, which JSON pointers (RFC 6901) name: as JSON values, whatever their text. */
import type { TaskResult } from "./model.ts";
import { canonicalJson, isSameJson, parseExact } from "../lib/exact-json.ts";

/** By convention the data of a worker. */
export const OUTPUT_POINTER = "/output";

/** Null: the result has all of them. */
export function missingIn(result: TaskResult, pointers: readonly string[]): string | null {
  const value = valueOf(result);
  return pointers.find((pointer) => at(value, pointer) === undefined) ?? null;
}

/** Equal for all results that agree. */
export function comparedText(result: TaskResult, pointers: readonly string[]): string {
  const value = valueOf(result);
  return canonicalJson(JSON.stringify(pointers.map((pointer) => at(value, pointer))));
}

export function isSameResult(a: TaskResult | null, b: TaskResult): boolean {
  if (a === null || a.problem !== b.problem || a.improvement !== b.improvement) return false;
  return a.lesson === b.lesson && isSameJson(a.extra ?? "{}", b.extra ?? "{}");
}

function valueOf({ problem, improvement, lesson, extra }: TaskResult): unknown {
  const fields = Object(parseExact(extra ?? "{}"));
  return { ...fields, problem, improvement, lesson };
}

function at(value: unknown, pointer: string): unknown {
  let part: unknown = value;
  for (const token of pointer.split("/").slice(1)) {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof part !== "object" || part === null || !Object.hasOwn(part, key)) return undefined;
    part = Object(part)[key];
  }
  return part;
}
