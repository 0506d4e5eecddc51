/**
 * Finds the fields of a request that its operation does not read, before the request is sent: a mistyped field would
 * vanish. Must not: check values; the hub does.
 */
import { LuxHubError, type FieldError } from "./http.ts";
import { FIELDS, type Shape } from "./types.ts";

/** @throws {LuxHubError} 400 `unknown_field` with the place of each */
export function refuseUnknownFields(operation: string, request: object): void {
  const shape = FIELDS[operation];
  if (shape === undefined) return; // of a newer hub
  const errors = [
    ...unknownIn(request, shape, ""),
    ...(operation === "batch" ? unknownInBatch(request) : []),
  ];
  const [first] = errors;
  if (first === undefined) return;
  const detail = `${operation} has no field ${first.path}${first.message}`;
  throw new LuxHubError({ status: 400, code: "unknown_field", detail, errors });
}

function unknownInBatch({ requests }: { readonly requests?: unknown }): readonly FieldError[] {
  if (!Array.isArray(requests)) return [];
  return requests.flatMap((one: unknown, i) => {
    const { path, body }: { readonly path?: unknown; readonly body?: unknown } = Object(one);
    const shape = FIELDS[String(path)];
    return shape === undefined ? [] : unknownIn(body, shape, `requests.${i}.body.`);
  });
}

function unknownIn(value: unknown, shape: Shape, before: string): readonly FieldError[] {
  if (shape === 0 || typeof value !== "object" || value === null) return [];
  if (Array.isArray(value))
    return value.flatMap((one: unknown, i) => unknownIn(one, shape, `${before}${i}.`));
  return Object.entries(value).flatMap(([name, part]) => {
    const inner = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (inner !== undefined) return unknownIn(part, inner, `${before}${name}.`);
    return part === undefined
      ? []
      : [{ path: `${before}${name}`, message: didYouMean(name, Object.keys(shape)) }];
  });
}

function didYouMean(name: string, names: readonly string[]): string {
  const [best] = names
    .map((known) => ({ known, edits: editsBetween(name, known) }))
    .toSorted((a, b) => a.edits - b.edits);
  const isNear = best !== undefined && best.edits <= Math.max(1, Math.floor(best.known.length / 3));
  return isNear ? `: did you mean ${best.known}?` : `: it must be ${names.join(", ")}`;
}

function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, swap));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
