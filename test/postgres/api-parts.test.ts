/**
 * Every file of test/api consists of transcripts, which run on PostgreSQL by themselves, belongs to a part that runs on
 * PostgreSQL, or to those left out with a reason.
 */
import { expect, test } from "bun:test";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { LEFT_OUT, PARTS, REPEATS } from "./api.ts";

const API = join(import.meta.dir, "../api");

/** Whether a file defines its tests by transcripts alone. */
function isTranscript(name: string): boolean {
  const text = readFileSync(join(API, name), "utf8");
  return text.includes("\ntranscripts(`") && !text.includes("bun:test");
}

test("every API test file is of transcripts, in a part or left out with a reason", () => {
  const files = readdirSync(API).filter((name) => name.endsWith(".test.ts") && !isTranscript(name));
  const placed = Object.values(PARTS).flatMap((names) => names.map((name) => `${name}.test.ts`));
  const left = Object.keys(LEFT_OUT).map((name) => `${name}.test.ts`);
  expect([...placed, ...left].toSorted()).toEqual(files.toSorted());
});

test("the files of the long form are in parts", () => {
  const placed: readonly string[] = Object.values(PARTS).flat();
  for (const name of REPEATS) expect(placed).toContain(name);
});

test("every part has a file", () => {
  const files = readdirSync(import.meta.dir);
  for (const part of Object.keys(PARTS)) expect(files).toContain(`api-${part}.test.ts`);
});
