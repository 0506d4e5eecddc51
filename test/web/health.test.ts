/** What the overview says about a hub, in which order, and where its links lead. */
import { expect, test } from "bun:test";
import { type Copy, type Facts, type Held, findingsOf } from "../../src/web/page/health.ts";

const WELL: Facts = {
  isOnline: true,
  canWrite: true,
  diskWarning: null,
  held: [],
  free: 0,
  running: 0,
  opens: () => true,
  done: 100,
  failed: 0,
  questions: 0,
  reviews: 0,
  deadLetters: 0,
  webhooksSuspended: 0,
  copy: undefined,
};

type Pair = NonNullable<Copy>;

const FIRST: Pair = { role: "first", term: 1, entry: 9, hub: null, standbys: [] };
const STANDBY: Pair = { ...FIRST, role: "standby", hub: "http://pi-1:19104" };
const SINCE = "2026-11-29T05:00:00.000Z";

function standby(fields: Partial<Pair["standbys"][number]>): Pair["standbys"][number] {
  const follows = { following: true, lag_entries: 0, lag_s: 0, since: SINCE, fault: null };
  return { name: "pi-2", url: null, ...follows, ...fields };
}

const held = (code: Held["code"], count: number, fields: Partial<Held> = {}): Held => ({
  ...{ code, count, exact: true, oldest_at: null, causes: [], ...fields },
});

/** The tone, the list and the action of each line. */
function linesOf(facts: Partial<Facts>): readonly string[] {
  const addressOf = (link: ReturnType<typeof findingsOf>[number]["link"]): string =>
    link === null ? "" : `${link.view}?${new URLSearchParams(link.query)}`;
  return findingsOf({ ...WELL, ...facts }).map(({ tone, count, link }) =>
    [tone, count?.words, addressOf(count), addressOf(link)].filter(Boolean).join(" "),
  );
}

const CASES: readonly (readonly [facts: Partial<Facts>, lines: readonly string[]])[] = [
  [{}, ["good"]],
  [{ free: 1_200, running: 1 }, ["good"]],
  [{ held: [held("depends_on", 3), held("quorum", 1)] }, ["good", "quiet"]],
  [{ isOnline: false, canWrite: false }, ["bad", "bad"]],
  [{ free: 30, done: 0 }, ["wait 30 tasks?status=ready tasks?status=ready"]],
  [{ done: 0, failed: 4 }, ["good"]],
  [{ done: 100, failed: 11 }, ["good"]],
  [{ done: 90, failed: 11 }, ["bad 11 tasks?status=failed&last=3600 tasks?status=failed&last=3600"]],
  [{ questions: 8, reviews: 12, held: [held("question", 8)] }, ["wait 20 inbox? inbox?"]],
  [{ held: [held("question", 8)] }, ["wait 8 tasks?status=question inbox?"]],
  [
    { held: [held("not_before", 9), held("quorum", 2), held("paused", 1)] },
    ["wait 1 tasks?status=paused control?", "quiet"],
  ],
  [{ webhooksSuspended: 2 }, ["wait control?"]],
  [
    {
      held: [held("not_before", 9), held("limit", 2_917, { exact: false }), held("nodes_offline", 2)],
      deadLetters: 1,
    },
    [
      "bad 2 tasks?status=nodes_offline nodes?status=offline",
      "wait 2,917+ tasks?status=limit control?",
      "wait 1 messages?parked=yes messages?parked=yes",
      "quiet 9 tasks?status=not_before tasks?status=not_before",
    ],
  ],
  [
    { held: [held("paused", 3)], opens: (view) => view !== "control" },
    ["wait 3 tasks?status=paused tasks?status=paused"],
  ],
  [{ copy: { ...FIRST, standbys: [standby({})] } }, ["good"]],
  [
    {
      copy: {
        ...FIRST,
        standbys: [
          standby({ name: "pi-3", following: false, since: null }),
          standby({ following: false, lag_entries: 7, lag_s: 90 }),
        ],
      },
    },
    ["bad control?", "wait control?"],
  ],
  [{ copy: { ...STANDBY, standbys: [standby({})] } }, ["quiet control?"]],
  [{ copy: { ...STANDBY, standbys: [standby({ following: false })] }, opens: () => false }, ["quiet"]],
  [{ copy: { ...STANDBY, standbys: [standby({ following: false, fault: "refused" })] } }, ["bad control?"]],
  [{ copy: { ...STANDBY, role: "superseded", standbys: [standby({ since: null })] } }, ["bad"]],
];

test("what is broken comes first; each number leads to its list, and each line to what can be done", () => {
  for (const [facts, lines] of CASES) expect(linesOf(facts)).toEqual([...lines]);
});

test("a line names the types that are held back, and why", () => {
  const causes = ["a", "b", "c", "d", "e"].map((task_type, i) => ({
    ...{ task_type, count: 5 - i, detail: "The hub is paused." },
  }));
  const [line] = findingsOf({ ...WELL, held: [held("paused", 15, { causes })] });
  expect(line?.why).toBe("a 5, b 4, c 3, d 2 …. The hub is paused.");
});

test("the lines of a second copy say who accepts writes, and what would be lost", () => {
  const wordsOf = (copy: Pair): string => {
    const [line] = findingsOf({ ...WELL, copy });
    return `${line?.what}: ${line?.why}`;
  };
  const behind = standby({ following: false, lag_entries: 7, lag_s: 90 });
  expect(wordsOf({ ...FIRST, standbys: [behind] })).toBe(
    "The standby pi-2 does not follow: Without this hub you would lose what it lacks: 7 entries, 1 min.",
  );
  expect(wordsOf({ ...STANDBY, standbys: [standby({ lag_entries: 1, lag_s: 0.05 })] })).toBe(
    "This hub is a standby: of http://pi-1:19104, which accepts writes; lag: 1 entry, 0.1 s",
  );
  const fault = "http://pi-1:19104 does not answer";
  expect(wordsOf({ ...STANDBY, standbys: [{ ...behind, fault }] })).toBe(
    `This standby does not follow: What you see of http://pi-1:19104 is 1 min old. ${fault}`,
  );
  expect(wordsOf({ ...STANDBY, role: "superseded", hub: "http://pi-2:19104" })).toMatch(
    /superseded: http:\/\/pi-2:19104 accepts writes\. .*luxhub join --data DIR/,
  );
  const never = standby({ following: false, since: null });
  expect(wordsOf({ ...FIRST, standbys: [never] })).toEndWith("on its machine; then luxhub serve.");
  expect(wordsOf({ ...FIRST, term: 2, standbys: [never] })).toContain("luxhub join --data DIR on that of");
});
