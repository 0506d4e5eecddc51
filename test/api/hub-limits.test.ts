/**
 * Each limit of the whole hub (domain/shares.ts) has a share for each node, and what a node did an administrator undoes,
 * also on a strict hub.
 */
import { expect, test } from "bun:test";
import { HUB_LIMITS, type HubLimit } from "../../src/domain/shares.ts";
import { DECLARED } from "../../src/api/routes.ts";
import { startHub } from "../support/hub.ts";
import { play } from "../support/transcript.ts";

/** How a node makes one of what a limit bounds, what comes before, and how an administrator removes the first. */
type Kind = {
  readonly before?: (name: string, node: string) => string;
  readonly make: (name: string, node: string) => string;
  readonly undo: string;
};

const KINDS: Partial<Record<keyof typeof HUB_LIMITS, Kind>> = {
  notes: { make: (name) => `note/put {key: ${name}, text: x}`, undo: "note/delete {key: e0}" },
  leases: {
    make: (name, node) => `lease/acquire ${node} {name: ${name}}`,
    undo: "lease/release evil {name: e0}",
  },
  holds: {
    before: (name, node) => `t = task/create {task_type: ${name}}\nas $${node} task/claim $t ${node}`,
    make: (name) => `limit/hold {key: ${name}, for_s: 60}`,
    undo: "limit/delete {key: e0}",
  },
  schedules: {
    make: (name) => `schedule/put {name: ${name}, every_s: 86400, task: {title: t, description: d}}`,
    undo: "schedule/delete {name: e0}",
  },
  lanes: { make: (name) => `task/create {limit_key: ${name}}`, undo: "task/cancel $first" },
};

const LIMITS = Object.entries<HubLimit>(HUB_LIMITS);

test("every share is tested, and what has none only an administrator can make and remove", () => {
  const shares = LIMITS.filter(([, { ofNode }]) => ofNode !== null).map(([name]) => name);
  expect(shares.filter((name) => !(name in KINDS))).toEqual([
    "noteBytes", // follows from the number of notes
    "pushes", // a2a.test.ts
  ]);
  const auths = new Map(DECLARED.map(({ path, auth }) => [path.replace("/api/v1/", ""), auth]));
  for (const [, { all, ofNode, undo }] of LIMITS) {
    expect(auths.has(undo)).toBe(true);
    if (ofNode === null) expect(auths.get(undo)).toBe("admin");
    else expect(ofNode).toBeLessThanOrEqual(all / 2);
  }
});

test.each(Object.entries(KINDS))(
  "a node has a share of the %s, and an administrator undoes it",
  async (kind, { before = () => "", make, undo }) => {
    await using hub = await startHub({ isStrict: true, isPrivate: true });
    const [, limit] = LIMITS.find(([name]) => name === kind) ?? [];
    expect(undo.startsWith(String(limit?.undo))).toBe(true);
    const share = Array.from({ length: Number(limit?.ofNode) }, (_, i) => `e${i}`);
    const batches = share.map((_, i) => (i % 250 === 0 ? share.slice(i, i + 250) : []));
    await play(
      hub,
      `${["evil", "honest"]
        .map(
          (node) => `${node} = admin key/add ${node} {name: ${node}}
        as $${node} node/register ${node} {name: ${node}, auto_assign: false}`,
        )
        .join("\n")}
      ${[...share, "more"].map((name) => before(name, "evil")).join("\n")}
      first = as $evil ${make("e0", "evil")}
      ${batches
        .filter((names) => names.length > 0)
        .map(
          (names) =>
            `as $evil batch\n${names.map((name) => `+ ${make(name === "e0" ? "e1" : name, "evil")}`).join("\n")}`,
        )
        .join("\n")}
      as $evil ${make("more", "evil")} -> 409 ${limit?.code}
      ${before("other", "honest")}
      as $honest ${make("other", "honest")}
      admin ${undo}
      as $evil ${make("more", "evil")}`,
    );
  },
);
