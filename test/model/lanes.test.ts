/** The short form of the sequences of lanes.ts (the long one is torture/model.ts). */
import { expect, test } from "bun:test";
import { HANG_MS } from "../support/hang.ts";
import { cases } from "../support/long.ts";
import { playLanes } from "./lanes.ts";

const SEQUENCES = cases(4, 8);

test(
  `${SEQUENCES} random sequences of requirements, limits and pauses: the hub hands out what it may, and nothing else`,
  async () => {
    const { handedOut, keptBack } = await playLanes(SEQUENCES, 1);
    expect(handedOut).toBeGreaterThan(20);
    expect(keptBack).toBeGreaterThan(20);
  },
  HANG_MS,
);
