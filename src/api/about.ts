/**
 * What a field means, said where it is declared, for the OpenAPI document. Other fields mean what FIELDS of
 * openapi-texts.ts says.
 */
import * as z from "zod/mini";

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
