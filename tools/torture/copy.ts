/**
 * A copy of a store of a million tasks and messages, made from an empty one and the entries of its change log. It says how
 * many entries that takes, their bytes, and how long the copy runs them.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { TempDir } from "../../test/e2e/program.ts";
import { must } from "../../src/lib/assert.ts";
import { fillStore } from "../bench/growth/growth.ts";
import { Follower } from "./follower.ts";
import type { Section } from "./section.ts";

const TASKS = 1_000_000;
const NODES = 10_000;

type Written = { readonly entries: number; readonly bytes: number };

function entriesIn(path: string): Written {
  using db = new Database(path, { readonly: true });
  const sql = "SELECT count(*) - 1 AS entries, sum(octet_length(body)) AS bytes FROM changes";
  return must(db.query<Written, []>(sql).get(), "an aggregate has a row");
}

export const copySection: Section = {
  name: "copy",
  title: "Copy",
  limitMs: 20 * 60_000,
  run: async (scale, _seed, progress) => {
    using dir = new TempDir();
    const data = dir.join("data");
    const tasks = Math.ceil(TASKS * scale);
    const follower = await Follower.ofNew(data, dir.join("copy.db"));
    try {
      await fillStore(data, { tasks, nodes: Math.ceil(NODES * scale) });
      const { entries, bytes } = entriesIn(join(data, "luxhub.db"));
      progress(`${tasks} tasks and messages are in ${entries} entries`);
      const startedMs = performance.now();
      follower.catchUp();
      const seconds = (performance.now() - startedMs) / 1_000;
      progress(`the copy has run them in ${seconds.toFixed(0)} s`);
      const found = follower.differences();
      for (const difference of found) progress(difference);
      return [
        {
          what: `Entries of ${tasks.toLocaleString("en")} tasks and as many messages; MiB; run by a copy in`,
          value: `${entries.toLocaleString("en")}; ${(bytes / 2 ** 20).toFixed(0)}; ${seconds.toFixed(0)} s`,
          goal: "",
          held: true,
        },
        {
          what: "Tables in which the copy differs",
          value: String(found.length),
          goal: "0",
          held: found.length === 0,
        },
      ];
    } finally {
      follower.close();
    }
  },
};
