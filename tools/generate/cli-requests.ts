/**
 * Writes src/cli/requests.ts, what the command line knows of the requests, from the OpenAPI document: `bun run
 * client-types`. A test holds the file equal to what this writes.
 */
import { join } from "node:path";
import type { Schema } from "../../src/api/openapi.ts";
import { formatted, operations } from "./client-types.ts";

const FILE = join(import.meta.dir, "../../src/cli/requests.ts");

const HEAD = `/**
 * Generated from the declarations of the endpoints by \`bun run client-types\`: do not edit. The fields of each request, in
 * its order, each with what its text on a command line must be: \`text\`, \`number\`, \`time\` (in seconds), \`moment\`,
 * \`switch\`, \`whole\` with the smallest number, \`word\` with the allowed words; \`json\` is anything else, \`…\` a list, and \`?\`
 * marks what may be left out.
 */
export const REQUESTS: Readonly<Record<string, string>> = {
`;
const ADMIN_HEAD =
  "/** The calls that need the administrator key. */\nexport const ADMIN_CALLS: readonly string[] = ";

function kindOf(name: string, schema: Schema): string {
  const alternatives = schema.anyOf?.filter(({ type }) => type !== "null");
  if (alternatives?.length === 1 && alternatives[0]) return kindOf(name, alternatives[0]);
  if (schema.items) {
    const item = kindOf(name, schema.items);
    return item === "json" ? item : `${item}…`;
  }
  if (schema.enum) return `word ${schema.enum.join("|")}`;
  if (schema.type === "boolean") return "switch";
  if (schema.type === "integer") return `whole ${schema.minimum ?? 0}`;
  if (schema.type === "number") return name.endsWith("_s") || name === "wait" ? "time" : "number";
  if (schema.type !== "string") return "json";
  return schema.format === "date-time" ? "moment" : "text";
}

export function cliRequests(): string {
  const lines = operations().map(({ name, request: [schema] }) => {
    const fields = Object.entries(schema.properties ?? {}).map(([field, of]) => {
      const isOptional = !schema.required?.includes(field);
      return `${field} ${kindOf(field, of)}${isOptional ? "?" : ""}`;
    });
    return `  ${JSON.stringify(name)}: ${JSON.stringify(fields.join(", "))},\n`;
  });
  const admin = operations().flatMap(({ name, needsAdmin }) => (needsAdmin ? [name] : []));
  return formatted(`${HEAD}${lines.join("")}};\n\n${ADMIN_HEAD}${JSON.stringify(admin)};\n`);
}

if (import.meta.main) await Bun.write(FILE, cliRequests());
