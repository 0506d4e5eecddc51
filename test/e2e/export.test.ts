/** `luxhub export` and `luxhub apply` with the real program: what leaves a hub, and comes into another. */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { ADMIN_KEY, type Ended, Hub, SECRET, TempDir, objectOf, run } from "./program.ts";

const on =
  (hub: Hub, cwd: string) =>
  (...args: readonly string[]): Promise<Ended> =>
    run(args, {
      cwd,
      env: {
        LUXHUB_URL: `http://${hub.host}:${hub.port}`,
        LUXHUB_SECRET: SECRET,
        LUXHUB_ADMIN_KEY: ADMIN_KEY,
      },
    });

const LATER = new Date(Date.now() + 3e9).toISOString();
const SETTINGS = `schedules:
  - {name: nightly, cron: 30 2 * * *, task: {title: Back up, description: all, review: creator, lux_reward: 1.5}}
  - name: chain
    every_s: 3600
    until: "${LATER}"
    tasks:
      - {ref: a, task: {title: a, description: a, delay_s: 5, tags: [x]}}
      - {ref: b, needs: [a], task: {title: b, description: b, quorum: {results: 2}}}
limits: [{key: gpu, running: 2}, {key: "", per_minute: 9}]
budgets: [{scope: hub, per: day, cost_usd: 20}, {scope: type, value: w, per: total, tokens: 5}]
webhooks: [{name: alert, url: "https://example.org/x"}]
keys: [{name: ci, mint_per_day: 100}, {name: w1, node_id: w1.*, variant: b, expires_at: "${LATER}"}]
`;

test("what one hub exports, applied to another, exports the same; a second time nothing changes", async () => {
  using dir = new TempDir();
  await using first = await Hub.start({ data: dir.join("first") });
  const luxhub = on(first, dir.path);
  writeFileSync(dir.join("hub.yaml"), SETTINGS);
  const trial = await luxhub("apply", "hub.yaml", "--dry-run");
  expect([trial.code, trial.stdout.match(/^\+ /gm)?.length, trial.stderr]).toEqual([0, 9, ""]);
  expect(await luxhub("apply", "hub.yaml", "--dry-run")).toEqual(trial);
  const applied = await luxhub("apply", "hub.yaml", "--json");
  const secrets = applied.stdout.split("\n").flatMap((line) => objectOf(line)["secret"] ?? []);
  expect([applied.code, secrets.length]).toEqual([0, 3]); // two keys, one webhook
  expect(await luxhub("apply", "hub.yaml", "--json")).toEqual({ code: 0, stdout: "", stderr: "" });

  await first.register("n1");
  await first.register("n2");
  await first.post("/task/create", { title: "a task", description: "d" });
  await first.post("/message/send", { from_node: "n1", to_node: "n2", content: "a message" });
  await first.post("/signin", { node_id: "n1" });
  await first.admin("/limit/hold", { key: "held", for_s: 60 });
  for (const text of ["1", "2"]) {
    await first.post("/note/put", { key: `note/${text}`, text });
    mkdirSync(dir.join(text));
    writeFileSync(dir.join(text, "Out.txt"), text);
    await luxhub("file", "put", `${text}/Out.txt`);
  }
  await luxhub("file", "put", "1/Out.txt", "--name", "out.TXT");
  await luxhub("file", "put", "1/Out.txt", "--name", "..");

  const out = await luxhub("export", "out", "--json");
  expect([out.code, out.stderr]).toEqual([0, ""]);
  const counts = objectOf(out.stdout);
  expect(counts).toMatchObject({ nodes: 2, tasks: 1, files: 4, notes: 2, messages: 1, ledger: 1 });
  const rows = (name: string) =>
    readFileSync(dir.join("out", `${name}.jsonl`), "utf8")
      .trimEnd()
      .split("\n")
      .map(objectOf);
  for (const [name, count] of Object.entries(counts))
    expect([name, rows(name).length]).toEqual([name, Number(count)]);
  expect(rows("messages")[0]?.["content"]).toBe("a message");
  expect(rows("notes").map(({ text }) => text)).toEqual(["1", "2"]);
  const bytes = rows("files").map(({ path }) => readFileSync(dir.join("out", String(path)), "utf8"));
  expect(bytes.toSorted()).toEqual(["1", "1", "1", "2"]);
  const names = readdirSync(dir.join("out", "files")).map((name) => name.toLowerCase());
  expect([new Set(names).size, names.includes("out.txt")]).toEqual([4, true]);
  expect((await luxhub("lux", "verify", "out/ledger.jsonl")).code).toBe(0);
  expect((await luxhub("export", "out")).code).toBe(5);

  await using second = await Hub.start({ data: dir.join("second") });
  const there = on(second, dir.path);
  expect((await there("apply", "out/settings.json")).code).toBe(0);
  expect((await there("apply", "hub.yaml")).stdout).toBe("nothing to change\n");
  expect((await there("export", "again")).code).toBe(0);
  const settingsIn = (name: string) => readFileSync(dir.join(name, "settings.json"), "utf8");
  expect(settingsIn("again")).toBe(settingsIn("out"));

  // A field that the file leaves out is the default again; what the file does not name stays.
  writeFileSync(
    dir.join("less.yaml"),
    "schedules: [{name: nightly, cron: 0 3 * * *, task: {title: Back up, description: all}}]",
  );
  const lines = (await there("apply", "less.yaml")).stdout.split("\n").map((line) => line.trim());
  expect(lines).toContain('cron: "30 2 * * *" -> "0 3 * * *"');
  expect(lines).toContain("task.lux_reward: 1.5 -> -");
  expect(lines).toContain('task.review: "creator" -> -');
  expect(lines.filter((line) => line.includes("->"))).toHaveLength(3);
  expect(JSON.parse((await there("schedule", "list", "--json")).stdout)).toHaveLength(2);
});

const WRONG = [
  ["shedules: []", "did you mean schedules?"],
  ["limits: [{key: a, runing: 2}]", "limits.a.runing is unknown (did you mean running?)"],
  ["schedules: [{name: a, every_s: 60, task: {titel: a, description: a}}]", "did you mean title?"],
  ["schedules: [{name: a, cron: x, task: {title: a, description: a}}]", "schedules.a.cron"],
  [
    "schedules: [{name: a, every_s: 60, tasks: [{ref: b, needs: [c], task: {title: a, description: a}}]}]",
    "c",
  ],
  ["webhooks: [{name: a, url: 'https://example.org', secret: s}]", "webhooks.a.secret"],
  ["keys: [{name: a}, {name: a}]", "keys.a is there twice"],
  ["keys: [{name: known, role: viewer}]", "keys.known differs"],
  ["limits: {a: 1}", "limits must be a list"],
] as const;

test("a file with a fault is refused before anything is changed", async () => {
  using dir = new TempDir();
  await using hub = await Hub.start({ data: dir.join("data") });
  const luxhub = on(hub, dir.path);
  writeFileSync(dir.join("known.yaml"), "keys: [{name: known}]");
  expect((await luxhub("apply", "known.yaml")).code).toBe(0);
  for (const [text, fault] of WRONG) {
    writeFileSync(dir.join("a.yaml"), `${text}\nbudgets: [{scope: hub, per: day, cost_usd: 20}]`);
    const { code, stdout, stderr } = await luxhub("apply", "a.yaml");
    expect([text, code, stdout]).toEqual([text, 2, ""]);
    expect(stderr).toContain(fault);
  }
  expect((await luxhub("budget", "list", "--json")).stdout.trim()).toBe("[]");
});
