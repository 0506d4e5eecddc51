/** Overload: crowds of streams, slow callers, a stream that stalls, long lists, calls that wait in silence. */
import { WAIT_SHARES } from "../../src/domain/limits.ts";
import { Hub, TempDir } from "../../test/e2e/program.ts";
import { PROGRAM } from "../../test/support/executable.ts";
import { measureBroadcasts } from "./broadcasts.ts";
import { measureCrowd } from "./crowd.ts";
import { measureIdle } from "./idle.ts";
import { measureLargeBroadcast } from "./large-broadcast.ts";
import { GREEDY_READS, type GreedyRead, type Times, measureGreedyReads } from "./greedy-reads.ts";
import { BEHIND_PROXY, measureGreedyWaits } from "./greedy-waits.ts";
import { measureNodeList, measureStalledLists } from "./lists.ts";
import { measureQuiet } from "./quiet.ts";
import type { Figure, Section } from "./section.ts";
import {
  RANGES,
  type RangeKind,
  measureBesideStrangers,
  measureUnreadDownloads,
  measureWoken,
} from "./strangers.ts";
import { UNREAD_KINDS, type UnreadKind, measureUnread } from "./unread.ts";
import { SLOW_KINDS, measureSlow } from "./slow.ts";
import { measureStalled } from "./stalled.ts";

const STREAMS = 10_000;
const IDLE_NODES = 1_000;
const IDLE_MS = 5_000;
/** Of one core. */
const IDLE_CPU_MAX = 0.03;
const LARGE_BROADCAST_STREAMS = 4_000;
const SLOW = 1_000;
const PROBE_MS = 5_000;
/** Far more than the sockets hold: at a smaller scale nothing would stall. */
const STALLED_MESSAGES = 500;
const NODES = 10_000;
const BESIDE_LISTS_P99_MS_MAX = 50;
const BESIDE_BROADCASTS_P99_MS_MAX = 100;
const LIST_CALLERS = 200;
/** One part, its JSON and its bytes. */
const LIST_MIB_EACH_MAX = 2;
const LISTS_ONCE_MIB = 100;
const UNREAD_CALLERS = 1_000;
/** Their turn, and a connection with nothing to do. */
const UNREAD_GONE_WITHIN_MS = 100_000;
const GREEDY_CALLS = 20_000;
const BESIDE_WAITS_MS_MAX = 100;
const QUIET_SECONDS = 600;
const RECEIVE_SECONDS = 300;

const KIB_EACH_MAX = 10;
export const LEFT_MIB_MAX = 5;
const CUT_WITHIN_MS = 30_000;
/** What the hub may grow by beside a stream that stalls: its garbage and the pages of its database. */
export const STALLED_GROWTH_MIB_MAX = 48;
/** What streams may hold together, and garbage, which the engine lets grow to some times that. */
export const LARGE_BROADCAST_MIB_MAX = 640;
/** What large answers may hold together, and garbage, which the engine lets grow to some times that. */
export const UNREAD_MIB_MAX = 900;
/** Beside callers without the secret who do not read their downloads, or their lists. */
export const UNREAD_DOWNLOADS_MIB_MAX = 48;
const BESIDE_STRANGERS_MS_MAX = 5_000;
const GREEDY_READERS = 1_000;
const BESIDE_GREEDY_READS_MS_MAX = 500;
const UNREAD_DOWNLOADS = 1_500;
const UNREAD_LISTS = 500;
const WOKEN_POLLS = 8_000;
const BESIDE_WOKEN_MS_MAX = 250;
const STALL_CUT_WITHIN_MS = 80_000;

/** A hub of its own for one part, on a data directory that goes with it. */
export async function withHub<T>(
  part: (hub: Hub, data: string) => Promise<T>,
  args: readonly string[] = [],
  command: readonly string[] = PROGRAM,
): Promise<T> {
  using dir = new TempDir();
  const data = dir.join("data");
  await using hub = await Hub.start({ data, args, command });
  const result = await part(hub, data);
  const { code } = await hub.stop();
  if (code !== 0 || hub.program.stderr !== "")
    throw new Error(`the hub ended with ${code}: ${hub.program.stderr}`);
  return result;
}

async function crowd(count: number): Promise<readonly Figure[]> {
  const { kibEach, told, reached, broadcastMs, dropped, leftMib } = await withHub((hub) =>
    measureCrowd(hub, count),
  );
  return [
    {
      what: `Memory of one of ${count} idle streams, KiB`,
      value: kibEach.toFixed(1),
      goal: `<= ${KIB_EACH_MAX}`,
      held: kibEach <= KIB_EACH_MAX,
    },
    {
      what: `Streams that a broadcast reached, once, of ${count}; dropped`,
      value: `${reached} of ${told} told, within ${Math.round(broadcastMs)} ms; ${dropped}`,
      goal: "all; 0",
      held: reached === count && told === count && dropped === 0,
    },
    {
      what: `Memory kept after ${count} have gone, MiB`,
      value: leftMib.toFixed(1),
      goal: `<= ${LEFT_MIB_MAX}`,
      held: leftMib <= LEFT_MIB_MAX,
    },
  ];
}

async function idle(nodes: number): Promise<readonly Figure[]> {
  const { calls, share } = await withHub((hub) => measureIdle(hub, nodes, IDLE_MS));
  return [
    {
      what: `Processor time beside ${calls} waiting receives and streams, % of a core`,
      value: (share * 100).toFixed(1),
      goal: `<= ${IDLE_CPU_MAX * 100}`,
      held: share <= IDLE_CPU_MAX,
    },
  ];
}

async function largeBroadcast(count: number): Promise<readonly Figure[]> {
  const { sentMib, reached, grewMib } = await withHub((hub) => measureLargeBroadcast(hub, count));
  return [
    {
      what: `Memory taken while ${sentMib.toFixed(0)} MiB of broadcasts went to ${count} streams, MiB; reached`,
      value: `${grewMib.toFixed(0)}; ${reached}`,
      goal: `<= ${LARGE_BROADCAST_MIB_MAX}; all`,
      held: grewMib <= LARGE_BROADCAST_MIB_MAX && reached === count,
    },
  ];
}

async function slow(count: number): Promise<readonly Figure[]> {
  const counts = { head: count, body: count, chunks: count / 10, upload: count / 10 };
  const { before, meanwhile, cut } = await withHub((hub) => measureSlow(hub, counts, PROBE_MS));
  return [
    {
      what: `p99 of others beside ${count} slow heads and ${count} slow bodies, ms`,
      value: `${before.p99Ms.toFixed(1)} before, ${meanwhile.p99Ms.toFixed(1)} meanwhile`,
      goal: "<= 2 x before",
      held: meanwhile.p99Ms <= 2 * before.p99Ms,
    },
    ...SLOW_KINDS.map((kind): Figure => {
      const report = cut[kind];
      return {
        what: `Slow ${kind}: the last of ${counts[kind]} cut after, s`,
        value: `${((report?.slowestMs ?? Number.NaN) / 1_000).toFixed(1)} (${report?.statuses.join(", ") || "no answer"})`,
        goal: `<= ${CUT_WITHIN_MS / 1_000}`,
        held: report?.cut === counts[kind] && report.slowestMs <= CUT_WITHIN_MS,
      };
    }),
  ];
}

async function stalled(messages: number): Promise<readonly Figure[]> {
  const { unreadMib, grewMib, cutAfterMs, came } = await withHub((hub) =>
    measureStalled(hub, messages, true),
  );
  const isWhole = came.length === messages && came.every((number, i) => number === i);
  return [
    {
      what: `Memory taken while ${unreadMib.toFixed(0)} MiB were sent to a stream that does not read, MiB`,
      value: grewMib.toFixed(1),
      goal: `<= ${STALLED_GROWTH_MIB_MAX}`,
      held: grewMib <= STALLED_GROWTH_MIB_MAX,
    },
    {
      what: "It is cut after, s",
      value: ((cutAfterMs ?? Number.NaN) / 1_000).toFixed(0),
      goal: `<= ${STALL_CUT_WITHIN_MS / 1_000}`,
      held: cutAfterMs !== null && cutAfterMs <= STALL_CUT_WITHIN_MS,
    },
    {
      what: `Events over both connections, of ${messages}`,
      value: `${came.length}, ${isWhole ? "each once, in order" : "with a gap or a repeat"}`,
      goal: "each once, in order",
      held: isWhole,
    },
  ];
}

async function lists(nodes: number, callers: number): Promise<readonly Figure[]> {
  const all = await withHub((hub) => measureNodeList(hub, nodes, PROBE_MS));
  const unread = await withHub((hub) => measureStalledLists(hub, callers, PROBE_MS), ["--variant", "B"]);
  const most = callers * LIST_MIB_EACH_MAX + LISTS_ONCE_MIB;
  return [
    {
      what: `p99 of others beside 8 callers of node/list with ${nodes} nodes, ms`,
      value: `${all.before.p99Ms.toFixed(1)} before, ${all.meanwhile.p99Ms.toFixed(1)} meanwhile`,
      goal: `<= ${BESIDE_LISTS_P99_MS_MAX}`,
      held: all.lists > 0 && all.meanwhile.p99Ms <= BESIDE_LISTS_P99_MS_MAX,
    },
    {
      what: `Memory taken by ${callers} callers of ${unread.pageMib.toFixed(0)} MiB of task/list who do not read, MiB`,
      value: `${unread.grewMib.toFixed(0)} (p99 of others ${unread.meanwhile.p99Ms.toFixed(0)} ms)`,
      goal: `<= ${most}`,
      held: unread.grewMib <= most,
    },
  ];
}

async function broadcasts(nodes: number): Promise<readonly Figure[]> {
  const { before, meanwhile, broadcasts, reached, kibEach } = await withHub((hub) =>
    measureBroadcasts(hub, nodes, PROBE_MS),
  );
  return [
    {
      what: `p99 and longest of others beside 8 callers of broadcasts to ${nodes} nodes, ms`,
      value: `${before.p99Ms.toFixed(1)}, ${before.longestMs.toFixed(0)} before; ${meanwhile.p99Ms.toFixed(1)}, ${meanwhile.longestMs.toFixed(0)} meanwhile`,
      goal: `p99 <= ${BESIDE_BROADCASTS_P99_MS_MAX}`,
      held: broadcasts > 0 && meanwhile.p99Ms <= BESIDE_BROADCASTS_P99_MS_MAX,
    },
    {
      what: "Such a broadcast takes, KiB; reached",
      value: `${kibEach.toFixed(0)}; ${[...reached].join(", ")}`,
      goal: "all",
      held: reached.size === 1 && reached.has(nodes + 1),
    },
  ];
}

async function unread(kind: UnreadKind, callers: number): Promise<readonly Figure[]> {
  const { askedMib, grewMib, meanwhile, goneAfterMs } = await withHub((hub) =>
    measureUnread(hub, kind, callers, PROBE_MS, true),
  );
  const goneMs = goneAfterMs ?? Number.NaN;
  return [
    {
      what: `Memory taken by ${callers} callers of ${askedMib} MiB of ${kind} who do not read, MiB; all gone after, s`,
      value: `${grewMib.toFixed(0)} (p99 of others ${meanwhile.p99Ms.toFixed(0)} ms); ${(goneMs / 1_000).toFixed(0)}`,
      goal: `<= ${UNREAD_MIB_MAX}; ${UNREAD_GONE_WITHIN_MS / 1_000}`,
      held: grewMib <= UNREAD_MIB_MAX && goneMs <= UNREAD_GONE_WITHIN_MS,
    },
  ];
}

type Part = () => Promise<readonly Figure[]>;

/**
 * Parts that mostly wait a minute or two for the hub to cut callers off, whatever the scale: in a short run beside one
 * another, else one after the other, so that none disturbs what another measures.
 */
async function waits(parts: readonly Part[], scale: number): Promise<readonly Figure[]> {
  if (scale < 1) return (await Promise.all(parts.map((part) => part()))).flat();
  const figures: Figure[] = [];
  for (const part of parts) figures.push(...(await part()));
  return figures;
}

async function greedyWaits(calls: number): Promise<readonly Figure[]> {
  const report = await withHub((hub, data) => measureGreedyWaits(hub, data, calls), BEHIND_PROXY);
  const { waited, refused, pollsWaited, pollsRefused, othersMs, revokedMs, statuses, kept } = report;
  const most = Math.min(calls, WAIT_SHARES.limitedKey);
  const polls = Math.min(calls, WAIT_SHARES.addresses);
  return [
    {
      what: `Blocked receives of ${calls} from one bound key; refused`,
      value: `${waited}; ${refused}`,
      goal: `${most}; the rest`,
      held: waited === most && refused === calls - most,
    },
    {
      what: `Waiting polls of ${calls} without a secret; refused`,
      value: `${pollsWaited}; ${pollsRefused}`,
      goal: `${polls}; the rest`,
      held: pollsWaited === polls && pollsRefused === calls - polls,
    },
    {
      what: "A message to a receive of another key meanwhile, ms",
      value: othersMs.toFixed(0),
      goal: `<= ${BESIDE_WAITS_MS_MAX}`,
      held: othersMs <= BESIDE_WAITS_MS_MAX,
    },
    {
      what: `${WAIT_SHARES.limitedKey} streams and receives gone after their key was revoked, ms; the next message`,
      value: `${revokedMs.toFixed(0)} (${statuses.join(", ")}); ${kept ? "still there" : "taken"}`,
      goal: "<= 1000; still there",
      held: revokedMs <= 1_000 && kept,
    },
  ];
}

async function greedyReads(callers: number): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const kind of Object.keys(GREEDY_READS) as GreedyRead[]) {
    // The longest lists are those of B.
    const args = GREEDY_READS[kind].reads ? [] : ["--variant", "B"];
    const { before, meanwhile, grewMib } = await withHub(
      (hub, data) => measureGreedyReads(hub, data, kind, callers, PROBE_MS),
      args,
    );
    const shown = ({ p50, p99 }: Times): string => `${p50.toFixed(1)}/${p99.toFixed(0)}`;
    const all = ["heartbeats", "lists", "receives"] as const;
    figures.push({
      what: `p50/p99 of others' ${all.join(", ")} beside ${callers} callers of ${kind}, ms; memory, MiB`,
      value: `${all.map((what) => `${shown(before[what])} then ${shown(meanwhile[what])}`).join(", ")}; ${grewMib.toFixed(0)}`,
      goal: `p50 <= ${BESIDE_GREEDY_READS_MS_MAX}`,
      held: all.every((what) => meanwhile[what].p50 <= BESIDE_GREEDY_READS_MS_MAX),
    });
  }
  return figures;
}

async function strangers(downloads: number, callers: number, polls: number): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const kind of Object.keys(RANGES) as RangeKind[]) {
    const grewMib = await withHub((hub) => measureUnreadDownloads(hub, [kind], downloads));
    figures.push({
      what: `Memory taken by ${downloads} downloads (range: ${kind}) without the secret that are not read, MiB`,
      value: grewMib.toFixed(0),
      goal: `<= ${UNREAD_DOWNLOADS_MIB_MAX}`,
      held: grewMib <= UNREAD_DOWNLOADS_MIB_MAX,
    });
  }
  const { slowestMs, answered } = await withHub((hub) => measureWoken(hub, polls));
  figures.push({
    what: `The slowest of the others while one commit answers ${answered} polls, ms`,
    value: slowestMs.toFixed(0),
    goal: `<= ${BESIDE_WOKEN_MS_MAX}`,
    held: slowestMs <= BESIDE_WOKEN_MS_MAX,
  });
  const { status, tookMs, grewMib } = await withHub((hub) => measureBesideStrangers(hub, callers));
  figures.push({
    what: `A receive beside ${callers} callers of task/list without the secret who do not read, ms; memory, MiB`,
    value: `${status} after ${tookMs.toFixed(0)}; ${grewMib.toFixed(0)}`,
    goal: `200, <= ${BESIDE_STRANGERS_MS_MAX}`,
    held: status === 200 && tookMs <= BESIDE_STRANGERS_MS_MAX,
  });
  return figures;
}

async function quiet(streamSeconds: number, receiveSeconds: number): Promise<readonly Figure[]> {
  const { held, streamMs, receiveMs } = await withHub((hub) =>
    measureQuiet(hub, streamSeconds, receiveSeconds),
  );
  return [
    {
      what: "Quiet stream, receive and its repeat held, s",
      value: `${Math.round(streamMs / 1_000)}, ${Math.round(receiveMs / 1_000)}: ${held.map((one) => (one ? "held" : "cut")).join(", ")}`,
      goal: "held",
      held: held.every((one) => one),
    },
  ];
}

export const OVERLOAD: Section = {
  name: "overload",
  title: "Overload",
  limitMs: 20 * 60_000,
  run: async (scale, _seed, progress) => {
    const counted = (count: number): number => Math.max(20, Math.round(count * scale));
    // Ten minutes of nothing: beside all the others, on a hub of its own.
    const waiting = quiet(Math.max(1, QUIET_SECONDS * scale), Math.max(1, RECEIVE_SECONDS * scale));
    waiting.catch(() => {}); // awaited at the end
    progress(`${counted(STREAMS)} streams, twice`);
    const figures = [...(await crowd(counted(STREAMS)))];
    progress("calls that wait");
    figures.push(...(await idle(counted(IDLE_NODES))));
    progress("large broadcasts");
    figures.push(...(await largeBroadcast(counted(LARGE_BROADCAST_STREAMS))));
    progress(`${counted(SLOW)} slow callers of each kind`);
    figures.push(...(await slow(counted(SLOW))));
    progress("long lists");
    figures.push(...(await lists(counted(NODES), counted(LIST_CALLERS))));
    progress("broadcasts to all nodes");
    figures.push(...(await broadcasts(counted(NODES))));
    progress("a stream that does not read, and large answers that nobody reads");
    const unreads = UNREAD_KINDS.map(
      (kind): Part =>
        () =>
          unread(kind, counted(UNREAD_CALLERS)),
    );
    figures.push(...(await waits([() => stalled(STALLED_MESSAGES), ...unreads], scale)));
    progress(`${counted(GREEDY_CALLS)} blocked receives of one key`);
    figures.push(...(await greedyWaits(counted(GREEDY_CALLS))));
    progress(`${counted(GREEDY_READERS)} large reads of one caller`);
    figures.push(...(await greedyReads(counted(GREEDY_READERS))));
    progress("callers without the secret who read nothing");
    figures.push(
      ...(await strangers(counted(UNREAD_DOWNLOADS), counted(UNREAD_LISTS), counted(WOKEN_POLLS))),
    );
    progress("waiting for the calls that wait in silence");
    return [...figures, ...(await waiting)];
  },
};
