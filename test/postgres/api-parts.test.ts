/** Every test of the API has its place in a part that is run on PostgreSQL; and what is left out here is said once. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { LEFT_OUT, PARTS } from "./api.ts";

test("all tests of the API are run on PostgreSQL too", () => {
  const files = readdirSync(join(import.meta.dir, "../api")).filter((name) => name.endsWith(".test.ts"));
  const placed = Object.values(PARTS).flatMap((names) => names.map((name) => `${name}.test.ts`));
  const left = Object.keys(LEFT_OUT).map((name) => `${name}.test.ts`);
  expect([...placed, ...left].toSorted()).toEqual(files.toSorted());
});

test("the parts each have a file", () => {
  const files = readdirSync(import.meta.dir);
  for (const part of Object.keys(PARTS)) expect(files).toContain(`api-${part}.test.ts`);
});
