/** The API reference of the manual: the OpenAPI document of a variant as one HTML page, made once for each variant. */
import type { VariantName } from "../domain/model.ts";
import { type Html, html } from "../lib/html.ts";
import { frame } from "../manual/frame.ts";
import type { Variant } from "../variant/variant.ts";
import type { Declared, Endpoint } from "./endpoint.ts";
import {
  type Media,
  type OpenApiDocument,
  type Operation,
  type Parameter,
  type Schema,
  errorCodesOf,
  openApi,
  parametersOf,
} from "./openapi.ts";
import { ERRORS, type ErrorCode } from "./openapi-texts.ts";

type Page = { readonly content: string; readonly type: string; readonly etag: string };

const made = new Map<VariantName, Page>();

export function apiReference(variant: Variant, endpoints: readonly (Endpoint | Declared)[]): Page {
  const page = made.get(variant.name) ?? makePage(openApi(variant, endpoints), variant.name);
  made.set(variant.name, page);
  return page;
}

function makePage(document: OpenApiDocument, variant: VariantName): Page {
  const content = pageOf(document, variant);
  const hash = new Bun.CryptoHasher("sha256").update(content).digest("hex");
  return { content, type: "text/html; charset=utf-8", etag: `"${hash.slice(0, 32)}"` };
}

function prose(markdown: string): Html {
  const blocks = markdown.split("\n\n").map((block) => {
    if (!block.startsWith("- ")) return html`<p>${inline(block)}</p>`;
    const items = block.slice(2).split("\n- ");
    return html`<ul>
      ${items.map((item) => html`<li>${inline(item)}</li>`)}
    </ul>`;
  });
  return html`${blocks}`;
}

function inline(markdown: string): Html {
  const parts = markdown.split("`");
  return html`${parts.map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}

// ---- The page

type Listed = { readonly method: string; readonly path: string; readonly operation: Operation };

function pageOf(document: OpenApiDocument, variant: VariantName): string {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): Listed => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );
  const ofTag = (tag: string): readonly Listed[] =>
    operations.filter(({ operation }) => operation.tags.includes(tag));
  const common = commonCodes(document, operations);
  const other = variant === "A" ? "B" : "A";
  const contents = html`
    ${document.tags.map(
      ({ name }) =>
        html`<h2><a href="#${name}">${name}</a></h2>
          <ul>
            ${ofTag(name).map(
              ({ method, path, operation }) =>
                html`<li>
                  <a href="#${operation.operationId}"
                    ><b class="${method}">${method}</b> ${shortPath(path)}</a
                  >
                </li> `,
            )}
          </ul> `,
    )}
    <h2><a href="#records">records</a></h2>
    <ul>
      ${Object.keys(document.components.schemas).map(
        (name) => html`<li><a href="#${name}">${name}</a></li> `,
      )}
    </ul>
    <h2><a href="#errors">errors</a></h2>
  `;
  const main = html`
    <h1>The API of this hub, variant ${variant}</h1>
    ${prose(String(document.info["description"]))}
    <p>
      The same as an OpenAPI 3.1 document:
      <a href="../api/v1/openapi.json"><code>GET /api/v1/openapi.json</code></a
      >, or <code>luxhub openapi --variant ${variant}</code>; the other variant:
      <code>luxhub openapi --variant ${other}</code>. In the examples, <code>$HUB</code> is the address of the
      hub, <code>$SECRET</code> its secret and <code>$ADMIN_KEY</code> the administrator key.
    </p>
    ${document.tags.map(
      ({ name, description }) =>
        html`<section>
          <h2 id="${name}">${name} <a href="#${name}" aria-label="link to ${name}">#</a></h2>
          <p>${description}</p>
          ${ofTag(name).map((listed) => article(document, listed, common))}
        </section> `,
    )}
    <section>
      <h2 id="records">records <a href="#records" aria-label="link to records">#</a></h2>
      <p>The objects in requests and responses.</p>
      ${Object.entries(document.components.schemas).map(
        ([name, schema]) =>
          html`<article>
            <h3 id="${name}">${name} <a href="#${name}" aria-label="link to ${name}">#</a></h3>
            ${schema.description === undefined ? "" : html`<p>${inline(schema.description)}</p>`}${fieldsOf(schema)}
          </article> `,
      )}
    </section>
    <section>
      <h2 id="errors">errors <a href="#errors" aria-label="link to errors">#</a></h2>
      <p>Each is a <a href="#Problem">Problem</a> with the code in <code>error</code>.</p>
      ${[...common].map(
        ([of, codes]) => html`<p id="errors-of-${of}">Every ${of} may return ${codeLinks([...codes])}.</p> `,
      )}${table(
        ["Status", "Code", "When"],
        Object.entries(ERRORS).map(([code, { status, when }]) => [
          html`${status}`,
          html`<code id="${code}">${code}</code>`,
          inline(when),
        ]),
      )}
    </section>
  `;
  return frame({ title: `API reference, variant ${variant}`, contents, main }, "");
}

function shortPath(path: string): string {
  return path.replace("/api/v1/", "");
}

function commonCodes(
  document: OpenApiDocument,
  operations: readonly Listed[],
): ReadonlyMap<"request" | "POST", ReadonlySet<ErrorCode>> {
  const shared = (listed: readonly Listed[]): ReadonlySet<ErrorCode> =>
    listed
      .map(({ operation }) => new Set(errorCodesOf(document, operation).values().toArray().flat()))
      .reduce((kept, codes) => kept.intersection(codes));
  const ofAll = shared(operations);
  const ofPosts = shared(operations.filter(({ method }) => method === "POST"));
  return new Map([
    ["request", ofAll],
    ["POST", ofPosts.difference(ofAll)],
  ]);
}

function article(
  document: OpenApiDocument,
  { method, path, operation }: Listed,
  common: ReturnType<typeof commonCodes>,
): Html {
  const { operationId: id, summary, requestBody, responses } = operation;
  const parameters = parametersOf(document, operation);
  const success = Object.entries(responses).flatMap(([status, answer]) =>
    Number(status) < 400 && "description" in answer ? [{ status, answer }] : [],
  );
  const media = Object.values(requestBody?.content ?? {})[0];
  return html`<article>
    <h3 id="${id}">
      <b class="${method}">${method}</b> ${path} <a href="#${id}" aria-label="link to ${id}">#</a>
    </h3>
    <p>${inline(summary)}. ${accessOf(operation)}</p>
    ${takes(parameters, media)}${success.map(
      ({ status, answer }) =>
        html`<h4>Returns ${status}</h4>
          ${Object.entries(answer.content ?? {}).map(([type, { schema }]) =>
            type === "application/json" && !isPlain(schema)
              ? fieldsOf(schema)
              : html`<p>${inline(answer.description)}</p>`,
          )}${answer.content ? "" : html`<p>${inline(answer.description)}</p>`}`,
    )}${refusals(document, operation, method, common)}${exampleOf(document, { method, path, operation })}
  </article> `;
}

function accessOf({ security }: Operation): Html {
  const [first = {}] = security;
  if ("admin_key" in first) return html`<span class="access">secret and administrator key</span>`;
  if ("secret" in first) return html`<span class="access">secret</span>`;
  return html`<span class="access">public</span>`;
}

function takes(parameters: readonly Parameter[], media: Media | undefined): Html {
  const places = { path: "In the path", query: "In the query", header: "Header" };
  const ofPlace = (...wanted: readonly Parameter["in"][]) =>
    parameters
      .filter((parameter) => wanted.includes(parameter.in))
      .map(({ name, in: place, required, description, schema }) =>
        row(name, required === true, schema, html`${places[place]}. ${inline(description)}`),
      );
  const rows = [...ofPlace("path", "query"), ...rowsOf(media?.schema ?? {}), ...ofPlace("header")];
  if (rows.length === 0) return html``;
  return html`<h4>Takes</h4>
    ${table(["Field", "Type", "Meaning"], rows)}`;
}

function refusals(
  document: OpenApiDocument,
  operation: Operation,
  method: string,
  common: ReturnType<typeof commonCodes>,
): Html {
  const isPost = method === "POST";
  const special = [...errorCodesOf(document, operation)].flatMap(([status, codes]) => {
    const uncommon = codes.filter(
      (code) => !common.get("request")?.has(code) && !(isPost && common.get("POST")?.has(code)),
    );
    return uncommon.length === 0 ? [] : [html`${status} ${codeLinks(uncommon)}`];
  });
  const shared = isPost
    ? html`<a href="#errors-of-POST">every POST</a>`
    : html`<a href="#errors-of-request">every request</a>`;
  return html`<p class="errors">Errors: ${special.map((part) => html`${part}; `)}those of ${shared}.</p> `;
}

function codeLinks(codes: readonly ErrorCode[]): Html {
  return html`${codes.map((code, i) => html`${i === 0 ? "" : ", "}<a href="#${code}"><code>${code}</code></a>`)}`;
}

// ---- Fields

function table(heads: readonly string[], rows: readonly (readonly Html[])[]): Html {
  return html`<div class="table">
    <table>
      <thead>
        <tr>
          ${heads.map((head) => html`<th>${head}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (cells) =>
            html`<tr>
              ${cells.map((cell) => html`<td>${cell}</td>`)}
            </tr> `,
        )}
      </tbody>
    </table>
  </div> `;
}

function isPlain(schema: Schema): boolean {
  return schema.$ref === undefined && schema.properties === undefined && schema.allOf === undefined;
}

function fieldsOf(schema: Schema): Html {
  if (schema.$ref !== undefined) return html`<p>${typeOf(schema)}</p>`;
  if (schema.allOf) {
    const bases = schema.allOf.filter(({ $ref }) => $ref !== undefined).map(typeOf);
    return html`<p>All fields of ${bases}, and:</p>
      ${schema.allOf.filter(({ $ref }) => $ref === undefined).map(fieldsOf)}`;
  }
  const rows = rowsOf(schema);
  return rows.length === 0 ? html`` : table(["Field", "Type", "Meaning"], rows);
}

function rowsOf({ properties = {}, required = [] }: Schema, within = ""): readonly (readonly Html[])[] {
  const fields = Object.entries(properties).filter(([, schema]) => schema.const !== true); // `success`: described once
  return fields.flatMap(([name, schema]) => {
    const path = `${within}${name}`;
    const inner = schema.items?.properties ? schema.items : schema;
    const innerPath = inner === schema ? `${path}.` : `${path}[].`;
    return [
      row(path, required.includes(name), schema, inline(schema.description ?? "")),
      ...rowsOf(inner, innerPath),
    ];
  });
}

function row(name: string, required: boolean, schema: Schema, meaning: Html): readonly Html[] {
  return [
    html`<code>${name}</code>${required ? "" : html`<i title="may be left out">?</i>`}`,
    typeOf(schema),
    meaning,
  ];
}

function typeOf(schema: Schema): Html {
  const { $ref, type, anyOf, items, maxItems, format } = schema;
  if ($ref !== undefined) {
    const name = $ref.slice($ref.lastIndexOf("/") + 1);
    return html`<a href="#${name}">${name}</a>`;
  }
  if (anyOf) return html`${anyOf.map((member, i) => html`${i === 0 ? "" : " or "}${typeOf(member)}`)}`;
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum) return html`${words(schema.enum)}`;
  if (type === "array") {
    const most = maxItems === undefined ? "" : ` (up to ${maxItems.toLocaleString("en-US")})`;
    return html`array${most} of ${items && Object.keys(items).length > 0 ? typeOf(items) : "any"}`;
  }
  if (format === "date-time") return html`time`;
  if (format === "binary") return html`bytes`;
  return html`${[type ?? "any"].flat().join(" or ")}${boundsOf(schema)}`;
}

function words(values: readonly unknown[]): Html {
  return html`${values.map((value, i) => html`${i === 0 ? "" : ", "}<code>${typeof value === "string" ? value : JSON.stringify(value)}</code>`)}`;
}

function boundsOf({ minimum, maximum, maxLength }: Schema): string {
  const text = (bound: number): string => bound.toLocaleString("en-US");
  if (maxLength !== undefined) return `, at most ${text(maxLength)} long`;
  if (minimum !== undefined && maximum !== undefined) return `, ${text(minimum)} to ${text(maximum)}`;
  if (minimum !== undefined) return `, from ${text(minimum)}`;
  return maximum === undefined ? "" : `, up to ${text(maximum)}`;
}

// ---- Examples

function exampleOf(document: OpenApiDocument, listed: Listed): Html {
  const answer = listed.operation.responses["200"];
  const media = answer && "content" in answer ? Object.values(answer.content ?? {})[0] : undefined;
  if (media?.example === undefined) return html``;
  const text = typeof media.example === "string" ? media.example : JSON.stringify(media.example, null, 2);
  return html`<h4>Example</h4>
    <pre><code>${curlOf(document, listed)}</code></pre>
    <pre class="answer"><code>${text}</code></pre> `;
}

function curlOf(document: OpenApiDocument, { method, path, operation }: Listed): string {
  const examples = parametersOf(document, operation).filter(({ example }) => example !== undefined);
  const filled = examples
    .filter((parameter) => parameter.in === "path")
    .reduce((text, { name, example }) => text.replace(`{${name}}`, String(example)), path);
  const query = new URLSearchParams(
    Object.fromEntries(
      examples
        .filter((parameter) => parameter.in === "query")
        .map(({ name, example }) => [name, String(example)]),
    ),
  ).toString();
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const [access = {}] = operation.security;
  const lines = [
    `curl ${method === "DELETE" ? "-X DELETE " : ""}"$HUB${filled}${query === "" ? "" : `?${query}`}"`,
    ...("secret" in access ? ['-H "X-Matrix-Secret: $SECRET"'] : []),
    ...("admin_key" in access ? ['-H "X-Admin-Key: $ADMIN_KEY"'] : []),
    ...examples
      .filter((parameter) => parameter.in === "header")
      .map(({ name, example }) => `-H ${quoted(`${name}: ${String(example)}`)}`),
    ...(media?.example === undefined ? (method === "POST" ? ["-X POST"] : []) : bodyOf(type, media.example)),
  ];
  return lines.join(" \\\n  ");
}

function bodyOf(type: string | undefined, example: unknown): readonly string[] {
  if (type !== "multipart/form-data") return [`-d ${quoted(JSON.stringify(example))}`];
  const fields = Object.entries({ ...(example as object) });
  return fields.map(([name, value]) =>
    name === "file" ? "-F file=@report.txt" : `-F ${quoted(`${name}=${JSON.stringify(value)}`)}`,
  );
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
