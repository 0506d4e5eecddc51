/** The short form of the model test (the long one is torture/model.ts). */
import { expect, test } from "bun:test";
import { cases } from "../support/long.ts";
import { playSequences } from "./run.ts";

const SEQUENCES = cases(10, 20);

test(`${SEQUENCES} random sequences of commands: the hub and the model agree`, async () => {
  const { sequences, commands } = await playSequences(SEQUENCES, 1);
  expect(sequences).toBe(SEQUENCES);
  expect(commands).toBeGreaterThan(25 * SEQUENCES);
});
