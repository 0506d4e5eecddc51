/** What a field means, said where the field is declared. */
import * as z from "zod/mini";

/**
 * Says what a field means, where its name alone does not say it (FIELDS of openapi-texts.ts). It goes around all that the
 * schema of the field is: about(z.nullable(…), "…").
 */
export function about<S extends z.ZodMiniType>(schema: S, text: string): S {
  z.globalRegistry.add(schema, { description: text });
  return schema;
}
