/** Callers without the secret that do not read their answers, in short; tools/torture uses thousands of them. */
import { describe, expect, test } from "bun:test";
import { type Burst, measureBurst, p99Of } from "../../tools/torture/burst.ts";
import { SECRET } from "./program.ts";
import { ANSWER_STALL_MS } from "../../src/domain/limits.ts";
import { UNREAD_DOWNLOADS_MIB_MAX, withHub } from "../../tools/torture/overload.ts";
import {
  RANGES,
  type RangeKind,
  measureBesideStrangers,
  measureUnreadDownloads,
} from "../../tools/torture/strangers.ts";

const LINUX = process.platform === "linux";
const DOWNLOADS = 100;
const LISTS = 120;
/** The bodies of 1 MiB together are 300 and 500 MiB; at most 101 were measured. The torture allows 150. */
const BURST_MIB_MAX = 200;

describe.skipIf(!LINUX)(`strangers who read nothing${LINUX ? "" : " (needs /proc)"}`, () => {
  test.concurrent(`${DOWNLOADS} downloads of each kind of range take no memory`, async () => {
    const kinds = Object.keys(RANGES) as RangeKind[];
    const grewMib = await withHub((hub) => measureUnreadDownloads(hub, kinds, DOWNLOADS));
    console.log(`${DOWNLOADS} downloads with each of ${kinds.join(", ")}: ${grewMib.toFixed(0)} MiB`);
    expect(grewMib).toBeLessThan(UNREAD_DOWNLOADS_MIB_MAX);
  });

  test.concurrent(`${LISTS} lists hold up no receive of who has the secret`, async () => {
    const { status, count, tookMs, grewMib } = await withHub((hub) => measureBesideStrangers(hub, LISTS));
    console.log(`${LISTS} lists: receive after ${tookMs.toFixed(0)} ms, ${grewMib.toFixed(0)} MiB`);
    expect([status, count]).toEqual([200, 8]);
    expect(tookMs).toBeLessThan(ANSWER_STALL_MS); // before any of them is cut off
  });
});

/** Each of these ended a hub whose callers waited for one promise, or took as much memory as it sent. */
describe.skipIf(!LINUX)(`bursts${LINUX ? "" : " (needs /proc)"}`, () => {
  const KIB = 1_024;
  const MIB = 1_024 * KIB;
  const SECRET_LINE = `X-Matrix-Secret: ${SECRET}`;
  const rows: readonly (Burst & { readonly name: string; readonly get: readonly string[] })[] = [
    {
      name: "without the secret",
      callers: 3_000,
      announcedBytes: 20 * KIB,
      sentBytes: 20 * KIB,
      get: ["401"],
    },
    {
      name: "with a wrong secret",
      callers: 1_000,
      announcedBytes: 20 * KIB,
      sentBytes: 20 * KIB,
      header: "X-Matrix-Secret: wrong",
      get: ["401", "429"],
    },
    {
      name: "that close, with the secret",
      callers: 3_000,
      announcedBytes: 20 * KIB,
      sentBytes: 20 * KIB,
      header: `${SECRET_LINE}\r\nConnection: close`,
      get: ["400"],
    },
    {
      name: "with bodies that are too large, with the secret",
      callers: 1_000,
      announcedBytes: 2 * MIB,
      sentBytes: KIB,
      header: SECRET_LINE,
      get: ["413"],
    },
    {
      name: "with bodies of 1 MiB that stall, with the secret",
      callers: 300,
      announcedBytes: MIB,
      sentBytes: MIB - 1,
      header: SECRET_LINE,
      get: ["503", "408", "closed", "reset"],
    },
    {
      name: "with bodies of 1 MiB, without the secret",
      callers: 500,
      announcedBytes: MIB,
      sentBytes: MIB,
      get: ["401", "closed", "reset"],
    },
  ];
  for (const { name, get, ...burst } of rows)
    test(`${burst.callers} at once ${name}`, async () => {
      await withHub(async (hub) => {
        const { outcomes, beatsMs, grewMib } = await measureBurst(hub, burst);
        console.log(
          `${name}: ${JSON.stringify(outcomes)}, p99 ${p99Of(beatsMs).toFixed(0)} ms, ${grewMib.toFixed(0)} MiB`,
        );
        expect(get).toEqual(expect.arrayContaining(Object.keys(outcomes)));
        expect(outcomes[get[0] ?? ""]).toBeGreaterThan(0);
        expect(grewMib).toBeLessThan(BURST_MIB_MAX);
      });
    });
});
