/** Callers without the secret that do not read their answers, in short; test/torture uses thousands of them. */
import { describe, expect, test } from "bun:test";
import { ANSWER_STALL_MS } from "../../src/domain/limits.ts";
import { UNREAD_DOWNLOADS_MIB_MAX, withHub } from "../torture/overload.ts";
import {
  RANGES,
  type RangeKind,
  measureBesideStrangers,
  measureUnreadDownloads,
} from "../torture/strangers.ts";

const LINUX = process.platform === "linux";
const DOWNLOADS = 300;
const LISTS = 200;

describe.skipIf(!LINUX)(`strangers who read nothing${LINUX ? "" : " (needs /proc)"}`, () => {
  test.concurrent.each(Object.keys(RANGES) as RangeKind[])(
    `${DOWNLOADS} downloads, range: %s, take no memory`,
    async (kind) => {
      const grewMib = await withHub((hub) => measureUnreadDownloads(hub, kind, DOWNLOADS));
      console.log(`${DOWNLOADS} downloads with range ${kind}: ${grewMib.toFixed(0)} MiB`);
      expect(grewMib).toBeLessThan(UNREAD_DOWNLOADS_MIB_MAX);
    },
  );

  test(`${LISTS} lists hold up no receive of who has the secret`, async () => {
    const { status, count, tookMs, grewMib } = await withHub((hub) => measureBesideStrangers(hub, LISTS));
    console.log(`${LISTS} lists: receive after ${tookMs.toFixed(0)} ms, ${grewMib.toFixed(0)} MiB`);
    expect([status, count]).toEqual([200, 8]);
    expect(tookMs).toBeLessThan(ANSWER_STALL_MS); // before any of them is cut off
  });
});
