/**
 * What a field means, said where the field is declared, for the OpenAPI document. A field without a text of its own means
 * what its name says in FIELDS of openapi-texts.ts, which has the names that many records and requests share.
 */
import * as z from "zod/mini";

/** It goes around all that the schema of the field is. */
export function about<S extends z.ZodMiniType>(schema: S, text: string): S {
  z.globalRegistry.add(schema, { description: text });
  return schema;
}

export const optional = <S extends z.ZodMiniType>(schema: S, text: string) => about(z.optional(schema), text);
export const nullable = <S extends z.ZodMiniType>(schema: S, text: string) => about(z.nullable(schema), text);

// ---- The fields of records

export const string = (text: string) => about(z.string(), text);
export const number = (text: string) => about(z.number(), text);
export const whole = (text: string) => about(z.int(), text);
export const flag = (text: string) => about(z.boolean(), text);
export const maybeString = (text: string) => nullable(z.string(), text);
export const maybeNumber = (text: string) => nullable(z.number(), text);
export const maybeWhole = (text: string) => nullable(z.int(), text);
