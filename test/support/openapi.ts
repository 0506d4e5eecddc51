/**
 * Validates requests and answers against the OpenAPI documents, with an independent validator of JSON Schema (ajv). An
 * object in an answer may have no other fields than the document says, although the document leaves that open to later
 * versions.
 */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { type OpenApiDocument, type Operation, type Schema, openApi } from "../../src/api/openapi.ts";
import { DECLARED } from "../../src/api/routes.ts";
import type { VariantName } from "../../src/domain/model.ts";
import { VARIANTS } from "../../src/variant/by-name.ts";

const ID = "luxhub:document";
/** The hub writes times with milliseconds, and reads others too. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

type Found = { readonly path: string; readonly operation: Operation };

export class DocumentChecks {
  readonly document: OpenApiDocument;
  readonly #operations: readonly (Found & { readonly method: string; readonly pattern: RegExp })[];
  readonly #ajv = new Ajv2020({ strict: false, formats: { "date-time": TIME, binary: true } });
  readonly #compiled = new Map<string, ValidateFunction | null>();

  private constructor(variant: VariantName) {
    this.document = openApi(VARIANTS[variant], DECLARED);
    this.#operations = Object.entries(this.document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({
        path,
        operation,
        method: method.toUpperCase(),
        pattern: new RegExp(`^${path.replace(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
      })),
    );
    const schemas = Object.entries(this.document.components.schemas);
    this.#ajv.addSchema({
      $id: ID,
      components: {
        schemas: Object.fromEntries(schemas.map(([name, schema]) => [name, this.#closed(schema)])),
      },
    });
  }

  static readonly #made: Partial<Record<VariantName, DocumentChecks>> = {};

  static of(variant: VariantName): DocumentChecks {
    return (DocumentChecks.#made[variant] ??= new DocumentChecks(variant));
  }

  find(method: string, path: string): Found | undefined {
    const literal = this.#operations.filter((one) => one.path === path);
    const all = literal.length > 0 ? literal : this.#operations.filter((one) => one.pattern.test(path));
    return all.find((one) => one.method === method);
  }

  /** What is wrong with an answer in JSON; null if it is as the document says. */
  answerFault(method: string, path: string, status: number, body: unknown): string | null {
    const found = this.find(method, path);
    const name = found ? `${found.operation.operationId} ${status}` : "a problem of no operation";
    const validate = this.#validator(name, () =>
      found ? this.#answerSchema(found.operation, status) : { $ref: "#/components/schemas/Problem" },
    );
    if (!validate) return `${name} is not in the document`;
    return validate(body) ? null : `${name}: ${this.#ajv.errorsText(validate.errors)}`;
  }

  /** What is wrong with a JSON body by the document; null if nothing is. */
  bodyFault({ operationId, requestBody }: Operation, body: unknown): string | null {
    const schema = Object.values(requestBody?.content ?? {})[0]?.schema;
    const validate = this.#validator(`${operationId} body`, () => schema);
    if (!validate) return body === undefined ? null : `${operationId} takes no body`;
    return validate(body) ? null : `${operationId} body: ${this.#ajv.errorsText(validate.errors)}`;
  }

  #validator(name: string, schemaOf: () => Schema | undefined): ValidateFunction | null {
    const known = this.#compiled.get(name);
    if (known !== undefined) return known;
    const schema = schemaOf();
    const made = schema ? this.#ajv.compile(this.#closed(schema)) : null;
    this.#compiled.set(name, made);
    return made;
  }

  #answerSchema({ responses }: Operation, status: number): Schema | undefined {
    const answer = responses[String(status)];
    const one =
      answer && "$ref" in answer
        ? this.document.components.responses[answer.$ref.replace("#/components/responses/", "")]
        : answer;
    return Object.values(one?.content ?? {})[0]?.schema;
  }

  /** The schema without room for further fields; what extends another is merged with it. */
  #closed(schema: Schema): Record<string, unknown> {
    const { $ref, allOf, properties, items, anyOf, additionalProperties, ...rest } = schema;
    if ($ref !== undefined) return { $ref: `${ID}${$ref}` };
    if (allOf) return this.#closed(this.#merged(allOf));
    return {
      ...rest,
      ...(properties
        ? {
            properties: Object.fromEntries(
              Object.entries(properties).map(([name, part]) => [name, this.#closed(part)]),
            ),
          }
        : {}),
      ...(additionalProperties
        ? { additionalProperties: this.#closed(additionalProperties) }
        : properties && { additionalProperties: false }),
      ...(items ? { items: this.#closed(items) } : {}),
      ...(anyOf ? { anyOf: anyOf.map((one) => this.#closed(one)) } : {}),
    };
  }

  #merged(parts: readonly Schema[]): Schema {
    const all = parts.map((part) =>
      part.$ref === undefined
        ? part
        : (this.document.components.schemas[part.$ref.replace("#/components/schemas/", "")] ?? {}),
    );
    return {
      type: "object",
      properties: Object.assign({}, ...all.map(({ properties = {} }) => properties)) as Record<
        string,
        Schema
      >,
      required: all.flatMap(({ required = [] }) => required),
    };
  }
}
