/**
 * A hub whose link goes down while PostgreSQL sends to it and it holds the write lock. `bun run torture --only
 * vanished-hub` is the long form, with the other moments.
 */
import { expect, test } from "bun:test";
import {
  WATCHED_MS,
  WHILE_SENDING,
  measureVanished,
  whyNoVanishedHub,
} from "../../tools/torture/vanished-hub.ts";

const reason = whyNoVanishedHub();
const suffix = reason === null ? "" : ` (skipped: ${reason})`;
test.skipIf(reason !== null)(
  `a hub that vanishes while it holds the write lock does not stop the others${suffix}`,
  async () => {
    const found = await measureVanished(console.log, WHILE_SENDING);
    expect(found.map(({ when }) => when)).toEqual([WHILE_SENDING]);
    // TCP alone gives up after a quarter of an hour. The long form judges how soon (10 s).
    expect(Math.max(...found.map(({ stoppedMs }) => stoppedMs))).toBeLessThan(WATCHED_MS);
  },
);
