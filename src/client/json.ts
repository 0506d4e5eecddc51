/**
 * JSON of what a program gives. JSON.stringify leaves out or empties what JSON does not have: a Map is `{}`, NaN is null,
 * a function is missing. Here each is an error that names it.
 */

/** @throws {TypeError} */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (name, part: unknown) => {
    const kind = kindWithoutJson(part);
    if (kind === null) return part;
    throw new TypeError(`${name === "" ? "the value" : `"${name}"`} is ${kind}, which JSON cannot represent`);
  });
}

function kindWithoutJson(value: unknown): string | null {
  if (typeof value === "number") return Number.isFinite(value) ? null : String(value);
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const isEmptied = Object.getPrototypeOf(value) !== Object.prototype && Object.keys(value).length === 0;
  const name = isEmptied ? value.constructor?.name : undefined;
  return name === undefined || name === "Object" ? null : `of class ${name}`;
}
