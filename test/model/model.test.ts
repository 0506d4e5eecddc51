/** The short form of the model test (the long one is torture/model.ts). */
import { expect, test } from "bun:test";
import { playSequences } from "./run.ts";

test("100 random sequences of commands: the hub and the model agree", async () => {
  const { sequences, commands } = await playSequences(100, 1);
  expect(sequences).toBe(100);
  expect(commands).toBeGreaterThan(2_500);
});
