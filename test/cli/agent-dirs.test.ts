/** Which directories of unfinished tasks a worker with an agent keeps. */
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanAgentDirs } from "../../src/cli/agent-task.ts";
import { openLog } from "../../src/lib/log.ts";

const DAY_S = 86_400;

test("the 100 newest, none older than 7 days, and nothing that is not a task's", () => {
  const dir = mkdtempSync(join(tmpdir(), "luxhub-agent-dirs-"));
  const now = Date.now() / 1_000;
  const made = (name: string, ageS: number): void => {
    mkdirSync(join(dir, name, "work"), { recursive: true });
    utimesSync(join(dir, name), now - ageS, now - ageS);
  };
  for (let i = 0; i < 103; i++) made(`agent-${i}`, 60 * i);
  made("agent-old", 8 * DAY_S);
  made("other", 30 * DAY_S);
  const log = openLog({ format: "json", level: "info", colour: false }, Date.now, () => {});
  try {
    cleanAgentDirs(dir, log);
    const kept = Array.from({ length: 100 }, (_, i) => `agent-${i}`);
    expect(readdirSync(dir).toSorted()).toEqual([...kept, "other"].toSorted());
    utimesSync(join(dir, "agent-0"), now - 8 * DAY_S, now - 8 * DAY_S);
    cleanAgentDirs(dir, log);
    expect(readdirSync(dir)).not.toContain("agent-0");
    expect(readdirSync(dir)).toHaveLength(100);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
