/** The short form of the model test (the long one is torture/model.ts). */
import { expect, test } from "bun:test";
import { playSequences } from "./run.ts";

test("20 random sequences of commands: the hub and the model agree", async () => {
  const { sequences, commands } = await playSequences(20, 1);
  expect(sequences).toBe(20);
  expect(commands).toBeGreaterThan(500);
});
