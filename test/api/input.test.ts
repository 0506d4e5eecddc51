/** Every endpoint parses its input alike before and after its schema has been compiled, and knows what it ignores. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ENDPOINTS } from "../../src/api/routes.ts";
import { inputParser, parseInput } from "../../src/api/input.ts";
import { COMPILE_INPUT_AFTER } from "../../src/domain/limits.ts";
import { Problem } from "../../src/http/problem.ts";
import { VARIANTS } from "../../src/variant/by-name.ts";
import { SECRET, startHub } from "../support/hub.ts";

const WORTHS = fc.oneof(
  fc.constantFrom<unknown>(
    "n-1",
    "high",
    "open",
    "2",
    "0.5",
    " ",
    "",
    "a\0b",
    "\ud800",
    "a,b",
    "x".repeat(300),
  ),
  fc.constantFrom<unknown>(0, 1, 2.5, -1, 0.0000001, 1e9, true, null, undefined),
  fc.constantFrom<unknown>(
    [],
    ["a", "b,c"],
    [1],
    { problem: "p", improvement: "i", lesson: "l" },
    { problem: 1 },
  ),
);

function outcome(read: () => unknown): unknown {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof Problem) return { problem: error.toJSON() };
    throw error;
  }
}

function fieldsOf(input: unknown): string[] {
  const shape = input instanceof Object && "shape" in input ? input.shape : {};
  return Object.keys(shape ?? {});
}

describe("no field that an endpoint reads counts as ignored, and every other does", () => {
  for (const endpoint of ENDPOINTS) {
    if (endpoint.kind !== "json") continue;
    const { input, inputOf, method, path } = endpoint;
    test(`${method} ${path}`, () => {
      for (const variant of [VARIANTS.A, VARIANTS.B]) {
        const known = fieldsOf(inputOf?.(variant) ?? input());
        const sent = Object.fromEntries([...known, "unknown"].map((name) => [name, 1]));
        expect(endpoint.ignoredIn(sent, variant)).toEqual(["unknown"]);
      }
    });
  }
});

describe("a compiled schema accepts and refuses the same, with the same messages", () => {
  for (const endpoint of ENDPOINTS) {
    if (endpoint.kind !== "json") continue;
    const { input, method, path } = endpoint;
    test(`${method} ${path}`, () => {
      const schema = input();
      const parse = inputParser(input);
      for (let use = 0; use <= COMPILE_INPUT_AFTER; use++) outcome(() => parse({}));
      const fields = [...fieldsOf(schema), "unknown", "__proto__"];
      const bodies = fc.dictionary(fc.constantFrom(...fields), WORTHS, { maxKeys: fields.length });
      fc.assert(
        fc.property(bodies, (body) => {
          expect(outcome(() => parse(body))).toEqual(outcome(() => parseInput(schema, body)));
        }),
        { numRuns: 300 },
      );
    });
  }
});

test("-0 is 0: the cache of rows holds what the database does", async () => {
  await using hub = await startHub();
  const headers = { "X-Matrix-Secret": SECRET };
  const body =
    '{"title":"t","description":"d","lux_reward":-0,"max_cost_usd":-0,"backoff_s":-0.0,"retain_s":-0}';
  const created = await fetch(`${hub.base()}/api/v1/task/create`, { method: "POST", headers, body });
  expect(created.status).toBe(200);
  const node = '{"node_id":"n1","name":"n","port":-0,"resources":{"gpu":-0}}';
  const registered = await fetch(`${hub.base()}/api/v1/node/register`, {
    method: "POST",
    headers,
    body: node,
  });
  expect(registered.status).toBe(200);
});
