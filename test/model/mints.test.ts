/** The short form of the sequences of mints.ts (the long one is torture/model.ts). */
import { expect, test } from "bun:test";
import { HANG_MS } from "../support/hang.ts";
import { playMints } from "./mints.ts";

test(
  "4 random sequences of rewards: a key promises as much a day as it may, and no more",
  async () => {
    const { promises, refusals } = await playMints(4, 1);
    expect(promises).toBeGreaterThan(20);
    expect(refusals).toBeGreaterThan(10);
  },
  HANG_MS,
);
