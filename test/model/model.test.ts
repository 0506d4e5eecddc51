/** The short form of the model test (the long one is torture/model.ts). */
import { expect, test } from "bun:test";
import { playSequences } from "./run.ts";

test("120 random sequences of commands: the hub does what the model does", async () => {
  const { sequences, commands } = await playSequences(120, 1);
  expect(sequences).toBe(120);
  expect(commands).toBeGreaterThan(3_000);
}, 120_000);
