/** The arguments of a tool: their schemas, what the schemas refuse, and what is read liberally. */
import type { JsonObject } from "../http/json-body.ts";
import { type FieldError, invalidRequest } from "../http/problem.ts";
import { parsePlain } from "../lib/exact-json.ts";
import { isRecord } from "./shapes.ts";

export type Args = JsonObject;

/** A JSON schema. One without any keyword would be `{}`, which some clients send as a text. */
export type Property = {
  readonly type?: "string" | "integer" | "number" | "boolean" | "array" | "object";
  readonly description?: string;
  readonly items?: Property;
  readonly properties?: Properties;
  readonly enum?: string[];
  readonly anyOf?: Property[];
};

export type Properties = Readonly<Record<string, Property>>;

export const STRING = { type: "string" } as const;
export const INTEGER = { type: "integer" } as const;
export const NUMBER = { type: "number" } as const;
export const BOOLEAN = { type: "boolean" } as const;
export const STRINGS = { type: "array", items: STRING } as const;

export function named(property: Property, names: string): Properties {
  return Object.fromEntries(names.split(" ").map((name) => [name, property]));
}

/** OpenAI, Google and VS Code refuse a list of tools with an array that does not say what its items are. */
const NO_LIST: Property[] = [{ type: "object" }, STRING, NUMBER];
export const ANY_JSON: Property = {
  anyOf: [...NO_LIST, BOOLEAN, { type: "array", items: { anyOf: NO_LIST } }],
};

/**
 * Returns the arguments as the schema wants them: numbers, booleans and lists may come as texts, because models send them so.
 * Null is the same as left out. The endpoints check the rest.
 * @throws {Problem} 400 that names each argument that is missing, wrong, or none of the tool's
 */
export function readArguments(
  properties: Properties,
  required: readonly string[],
  args: Args,
  prefix = "",
): Args {
  const errors: FieldError[] = [];
  const read: Record<string, unknown> = {};
  for (const name of required)
    if (args[name] === undefined || args[name] === null)
      errors.push({ path: prefix + name, message: "is required" });
  for (const [name, sent] of Object.entries(args)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property === undefined) {
      const known = Object.keys(properties).join(", ");
      const message = `is not an argument of this tool; its arguments are: ${known === "" ? "none" : known}`;
      errors.push({ path: prefix + name, message });
    } else if (sent !== null) {
      const value = asTyped(property, sent);
      if (isOfType(property, value)) read[name] = value;
      else errors.push({ path: prefix + name, message: mustBe(property) });
    }
  }
  if (errors.length > 0) throw invalidRequest(errors);
  return read;
}

const NUMERIC = /^\s*-?\d+(?:\.\d+)?\s*$/;

function asTyped({ type, items }: Property, sent: unknown): unknown {
  if (typeof sent !== "string") return sent;
  if (type === "array")
    return /^\s*\[/.test(sent) ? (listIn(sent) ?? sent) : items === STRING ? [sent] : sent;
  if ((type === "integer" || type === "number") && NUMERIC.test(sent)) return Number(sent);
  if (type === "boolean" && (sent === "true" || sent === "false")) return sent === "true";
  return sent;
}

function listIn(text: string): unknown {
  try {
    return parsePlain(text);
  } catch {
    return null;
  }
}

function isOfType(property: Property, value: unknown): boolean {
  const words = property.enum;
  if (words) return words.some((word) => word === value);
  switch (property.type) {
    case "array":
      return Array.isArray(value) && value.every((item) => property.items && isOfType(property.items, item));
    case "integer":
      return Number.isInteger(value);
    case "object":
      return isRecord(value);
    case undefined:
      return true;
    default:
      return typeof value === property.type;
  }
}

function mustBe(property: Property): string {
  const words = property.enum;
  if (words) return `must be one of ${words.join(", ")}`;
  return property.type === "array"
    ? `must be a list of ${property.items?.type}s`
    : `must be of the type ${property.type}`;
}

export function countOf(count: unknown, fallback: number, most: number): number {
  return typeof count === "number" ? Math.min(Math.max(Math.trunc(count), 1), most) : fallback;
}

export function offsetOf({ offset }: Args): number {
  return typeof offset === "number" && offset > 0 ? Math.trunc(offset) : 0;
}

export function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** @throws {Problem} 400 */
export function someOf(path: string, list: unknown, most: number): readonly string[] {
  const items = textsOf(list);
  if (items.length > 0 && items.length <= most) return items;
  throw invalidRequest([{ path, message: `must hold 1 to ${most} ${path}` }]);
}

export function textsOf(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.map(String) : [];
}
