/** The short form of the model test (the long one is torture/model.ts). */
import { expect, test } from "bun:test";
import { playSequences } from "./run.ts";

test("40 random sequences of commands: the hub and the model agree", async () => {
  const { sequences, commands } = await playSequences(40, 1);
  expect(sequences).toBe(40);
  expect(commands).toBeGreaterThan(1_000);
});
