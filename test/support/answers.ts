/**
 * Checks answers against the declarations of their endpoints: the schema of a success, the status and the codes of an
 * error. The OpenAPI documents are made from the same declarations (test/api/openapi.test.ts), but making one takes
 * longer than most tests: here a schema is made when the first answer needs it.
 */
import * as z from "zod/mini";
import type { AnswerSchema, Declared, Endpoint } from "../../src/api/endpoint.ts";
import { errorCodes } from "../../src/api/openapi.ts";
import { ERRORS, type ErrorCode } from "../../src/api/openapi-texts.ts";
import { advisoryLeaseSchema } from "../../src/api/response-schemas.ts";
import { DECLARED } from "../../src/api/routes.ts";
import type { VariantName } from "../../src/domain/model.ts";
import { VARIANTS } from "../../src/variant/by-name.ts";

const PATTERNS = DECLARED.map((endpoint) => ({
  endpoint,
  pattern: new RegExp(`^${endpoint.path.replace(".", "\\.").replaceAll(/:\w+/g, "[^/]+")}$`),
}));

type Answered = { readonly success?: unknown; readonly ignored?: unknown };

const PROBLEM = z.strictObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  success: z.literal(false),
  error: z.enum(Object.keys(ERRORS) as ErrorCode[]), // a record has its own keys
  errors: z.optional(z.array(z.strictObject({ path: z.string(), message: z.string() }))),
  version: z.optional(z.int()),
  holders: z.optional(z.array(advisoryLeaseSchema())),
  used: z.optional(z.int()),
  allowed: z.optional(z.int()),
  expected: z.optional(z.int()),
});

/** What is wrong with an answer in JSON; null if its endpoint declares it. `path` begins with /api/v1. */
export function answerFault(
  variant: VariantName,
  method: string,
  path: string,
  status: number,
  body: unknown,
): string | null {
  const endpoint = endpointOf(method, path);
  if (status >= 400) return problemFault(endpoint, status, body);
  if (endpoint && !("answer" in endpoint)) return null; // bytes, or described in openapi.ts
  if (!endpoint || status !== 200) return `a success of ${status} that no endpoint declares`;
  const { success, ignored = [], ...fields } = { success: false, ...(body as Answered) };
  if (!Array.isArray(ignored) || !ignored.every((name) => typeof name === "string"))
    return "ignored is no list of names";
  if (success !== true) return "a success that does not say so";
  const checked = schemaOf(endpoint.answer, variant).safeParse(fields);
  return checked.success ? null : `not as declared: ${checked.error.message}`;
}

function problemFault(
  endpoint: Endpoint | Declared | undefined,
  status: number,
  body: unknown,
): string | null {
  const checked = PROBLEM.safeParse(body);
  if (!checked.success) return `no problem of the hub: ${checked.error.message}`;
  const { error } = checked.data;
  if (checked.data.status !== status || ERRORS[error].status !== status) return `${error} is not ${status}`;
  const ofNone: readonly ErrorCode[] = ["not_found", "method_not_allowed", "host_not_allowed"];
  const declared = endpoint ? codesOf(endpoint).has(error) : ofNone.includes(error);
  return declared ? null : `${error} is not declared`;
}

/** A literal path takes precedence over a parameter. */
function endpointOf(method: string, path: string): Endpoint | Declared | undefined {
  const literal = DECLARED.filter((one) => one.path === path);
  const all =
    literal.length > 0
      ? literal
      : PATTERNS.filter(({ pattern }) => pattern.test(path)).map((one) => one.endpoint);
  return all.find((one) => one.method === method);
}

const schemas = { A: new Map(), B: new Map() } as const satisfies Record<
  VariantName,
  Map<AnswerSchema, ReturnType<AnswerSchema>>
>;
const codes = new Map<Endpoint | Declared, ReadonlySet<ErrorCode>>();

function schemaOf(declared: AnswerSchema, variant: VariantName): ReturnType<AnswerSchema> {
  const known: Map<AnswerSchema, ReturnType<AnswerSchema>> = schemas[variant];
  const schema = known.get(declared) ?? declared(VARIANTS[variant]);
  known.set(declared, schema);
  return schema;
}

function codesOf(endpoint: Endpoint | Declared): ReadonlySet<ErrorCode> {
  const known = codes.get(endpoint) ?? errorCodes(endpoint);
  codes.set(endpoint, known);
  return known;
}
