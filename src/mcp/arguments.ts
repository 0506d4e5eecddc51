/** The arguments of a tool: their schemas, what the schemas refuse, and what is read liberally. */
import type { JsonObject } from "../http/json-body.ts";
import { type FieldError, invalidRequest } from "../http/problem.ts";

export type Args = JsonObject;

type Items = { readonly type: "string" } | { readonly anyOf: { readonly type: string }[] };

/** A JSON schema. One without any keyword would be `{}`, which some clients send as a text. */
export type Property = {
  readonly type?: "string" | "integer" | "number" | "boolean" | "array" | "object";
  readonly description?: string;
  readonly items?: Items;
  readonly enum?: string[];
  readonly anyOf?: { readonly type: string; readonly items?: Items }[];
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
const JSON_ITEMS = { anyOf: ["object", "string", "number", "boolean"].map((type) => ({ type })) };
export const ANY_JSON: Property = {
  anyOf: [...JSON_ITEMS.anyOf, { type: "array", items: JSON_ITEMS }],
};

/**
 * Returns the arguments as the schema wants them: numbers and booleans may come as texts, because models send them so.
 * Null is the same as left out. The endpoints check the rest.
 * @throws {Problem} 400 that names each argument that is missing, wrong, or none of the tool's
 */
export function readArguments(properties: Properties, required: readonly string[], args: Args): Args {
  const errors: FieldError[] = [];
  const read: Record<string, unknown> = {};
  for (const name of required)
    if (args[name] === undefined || args[name] === null) errors.push({ path: name, message: "is required" });
  for (const [name, sent] of Object.entries(args)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (property === undefined) {
      const known = Object.keys(properties).join(", ");
      const message = `is not an argument of this tool; its arguments are: ${known === "" ? "none" : known}`;
      errors.push({ path: name, message });
    } else if (sent !== null) {
      const value = asTyped(property, sent);
      if (isOfType(property, value)) read[name] = value;
      else errors.push({ path: name, message: mustBe(property) });
    }
  }
  if (errors.length > 0) throw invalidRequest(errors);
  return read;
}

const NUMERIC = /^\s*-?\d+(?:\.\d+)?\s*$/;

function asTyped({ type }: Property, sent: unknown): unknown {
  if (typeof sent !== "string") return sent;
  if ((type === "integer" || type === "number") && NUMERIC.test(sent)) return Number(sent);
  if (type === "boolean" && (sent === "true" || sent === "false")) return sent === "true";
  return sent;
}

function isOfType(property: Property, value: unknown): boolean {
  const words = property.enum;
  if (words) return words.some((word) => word === value);
  switch (property.type) {
    case "array":
      return Array.isArray(value) && value.every((item) => typeof item === "string");
    case "integer":
      return Number.isInteger(value);
    case undefined:
      return true;
    default:
      return typeof value === property.type;
  }
}

function mustBe(property: Property): string {
  const words = property.enum;
  if (words) return `must be one of ${words.join(", ")}`;
  return property.type === "array" ? "must be a list of strings" : `must be of the type ${property.type}`;
}

export function countOf(count: unknown, fallback: number, most: number): number {
  return typeof count === "number" ? Math.min(Math.max(Math.trunc(count), 1), most) : fallback;
}

export function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

export function textsOf(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.map(String) : [];
}
