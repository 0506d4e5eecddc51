/** `luxhub run` with the real program, a real hub and a worker: one command for a pipeline, and what it does when it fails. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT } from "../support/executable.ts";
import { OWN_HOST } from "../support/keeper.ts";
import { type Ended, Hub, Program, SECRET, TempDir, listOf, objectOf, run, until } from "./program.ts";

const dir = new TempDir();
let hub: Hub;
let worker: Program;

beforeAll(async () => {
  hub = await Hub.start({ data: dir.join("data"), host: OWN_HOST });
  const script = `[ "$LUXHUB_TASK_TITLE" != broken ] || { echo 'cannot' >&2; exit 65; }
    cat in.txt 2>/dev/null; ls context/inputs 2>/dev/null | wc -l; echo "did $LUXHUB_TASK_TITLE"`;
  const words = ["--node", "w", "--capabilities", "w", "--concurrency", "8", "--workdir", dir.join("work")];
  worker = new Program(["worker", ...words, "--", "sh", "-c", script], { cwd: dir.path, env: environment() });
});
afterAll(async () => {
  await worker[Symbol.asyncDispose]();
  await hub[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

const environment = () => ({ LUXHUB_URL: `http://${OWN_HOST}:${hub.port}`, LUXHUB_SECRET: SECRET });

function runFile(name: string, text: string, ...flags: readonly string[]): Promise<Ended> {
  writeFileSync(dir.join(name), text);
  return run(["run", name, ...flags], { cwd: dir.path, env: environment() });
}

async function tasksOf(group: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return listOf((await hub.get(`/task/list?group=${group}&per_page=50`)).body["tasks"]);
}

test("150 documents: tasks, files, a matrix, a report of all of them", async () => {
  writeFileSync(dir.join("in.txt"), "input\n");
  const text = `tasks:
  fetch: {task_type: w, files: in.txt}
  read: {task_type: w, needs: fetch, matrix: {n: 1..150}, title: "Read {{n}}"}
  report: {task_type: w, needs: read}`;
  const { code, stdout } = await runFile("docs.yaml", text, "--json");
  const { tasks, group } = objectOf(stdout);
  expect(code).toBe(0);
  expect(String(group)).toMatch(/^docs-\d{8}T/);
  const outputs = listOf(tasks).map(({ result }) => objectOf(JSON.stringify(result))["output"]);
  expect(outputs).toHaveLength(152);
  expect(outputs[0]).toContain("input");
  expect(outputs.at(-1)).toContain("150");
});

const DOCUMENTS = Number(process.env["LUXHUB_TEST_DOCUMENTS"] ?? 12);
/** Documents of a part as files; each fifth fails once, the seventh for good; the report asks before it is published. */
const OFFICE = `case $LUXHUB_TASK_TYPE in
  fetch) part=\${LUXHUB_TASK_TITLE#fetch-}; n=$part
    while [ $n -le ${DOCUMENTS} ]; do echo "text of $n" > out/$n.txt; n=$((n + 3)); done;;
  summarise) n=\${LUXHUB_TASK_TITLE##* }
    [ $n != 7 ] || { echo unreadable >&2; exit 65; }
    [ $((n % 5)) != 0 ] || [ $LUXHUB_TASK_EPOCH -gt 1 ] || { echo busy >&2; exit 1; }
    sed "s/text/summary/" context/files/*/$n.txt;;
  report) echo '{"ask": {"question": "Publish?", "choices": ["yes", "no"]}}' >> "$LUXHUB_REPORT"
    until grep -q '"answered"' "$LUXHUB_ANSWERS"; do sleep 0.1; done
    cat context/inputs/*.json | grep -o 'summary of [0-9]*' | sort -u | wc -l;;
  esac`;

test("the example of the documentation, from a schedule: failures, a question and a report, without another tool", async () => {
  const page = await Bun.file(join(PROJECT, "docs/pipelines.md")).text();
  const [, yaml = ""] = /```yaml\n([^]*?)```/.exec(page) ?? [];
  expect(yaml.split("\n").filter((line) => !/^(?:#.*)?$/.test(line)).length).toBeLessThanOrEqual(15);
  writeFileSync(dir.join("docs.yaml"), yaml.replace("1..150", `1..${DOCUMENTS}`));
  const luxhub = async (...words: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(words, { cwd: dir.path, env: environment() });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    return stdout.trim();
  };
  const flags = ["--capabilities", "fetch,summarise,report", "--concurrency", "4", "--workdir", "office"];
  await using _office = new Program(["worker", "--node", "office", ...flags, "--", "sh", "-c", OFFICE], {
    cwd: dir.path,
    env: environment(),
  });
  await luxhub("schedule", "put", "docs", "--cron", "0 3 * * *", "--run", "docs.yaml");
  const report = await luxhub("schedule", "run", "docs");
  await until(async () => (await luxhub("questions")).includes("Publish?"));
  await luxhub("task", "answer", report, "yes");
  expect(await luxhub("task", "wait", report)).toBe(`${DOCUMENTS - 1}`);
  const { group } = objectOf(JSON.stringify((await hub.get(`/task/${report}`)).body["task"]));
  expect((await hub.get(`/group/${String(group)}`)).body).toMatchObject({
    total: DOCUMENTS + 4,
    by_status: { completed: DOCUMENTS + 3, failed: 1 },
  });
  await luxhub("schedule", "delete", "docs");
});

test("a failure is the exit code, with its reason; what it needs runs however that ends, if it says so", async () => {
  const text = `tasks:
  broken: {task_type: w}
  after: {task_type: w, needs: broken, on_dependency: run}
  never: {task_type: w, needs: broken}`;
  const { code, stdout, stderr } = await runFile("fails.yaml", text);
  expect(code).toBe(1);
  expect(stdout).toMatch(/broken +failed +cannot/);
  expect(stdout).toMatch(/never +dependency/);
  expect(stdout).toContain("did after");
  expect(stderr).toContain("2 of 3 tasks failed");
});

test("more tasks than one batch takes are resumed, not repeated", async () => {
  const text =
    "tasks: {many: {task_type: nobody, matrix: {n: 1..700}}, last: {task_type: nobody, needs: many}}";
  for (let i = 0; i < 2; i++)
    expect(await runFile("large.yaml", text, "--group", "large", "--detach")).toMatchObject({
      code: 0,
      stdout: "large\n",
    });
  expect((await hub.get("/group/large")).body).toMatchObject({ total: 701, unfinished: 701 });
});

test("a task that has ended when the rest is created is not created again", async () => {
  const text =
    "tasks: {many: {task_type: nobody, matrix: {n: 1..600}, title: 't{{n}}'}, last: {task_type: nobody, needs: many}}";
  const again = () => runFile("ended.yaml", text, "--group", "ended", "--detach", "--json");
  const tasks = objectOf(JSON.stringify(objectOf((await again()).stdout)["tasks"]));
  const [first] = Object.values(tasks);
  expect((await hub.post("/task/cancel", { task_id: first })).status).toBe(200);
  expect(objectOf((await again()).stdout)["tasks"]).toEqual(tasks);
  expect((await hub.get("/group/ended")).body).toMatchObject({ total: 601 });
});

test("a pipeline that fits into one batch makes a new group each time", async () => {
  const text = "tasks: {a: {task_type: nobody}}";
  expect(await runFile("small.yaml", text, "--group", "small", "--detach")).toMatchObject({ code: 0 });
  expect(await runFile("small.yaml", text, "--group", "small", "--detach")).toMatchObject({ code: 5 });
  expect(await tasksOf("small")).toHaveLength(1);
});

test("nothing runs of a pipeline that the hub refuses in part", async () => {
  await hub.post("/hub/pause", { type: "stopped" });
  const text =
    "tasks: {a: {task_type: nobody}, b: {task_type: nobody, needs: a, requires: {resources: {gpu: -1}}}}";
  const invalid = await runFile("invalid.yaml", text, "--group", "invalid");
  expect([invalid.code, invalid.stderr]).toEqual([2, expect.stringContaining("tasks.b.requires")]);
  expect(await tasksOf("invalid")).toEqual([]);
  const missing = await runFile("missing.yaml", "tasks: {a: {files: nowhere.txt}}", "--group", "missing");
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining("nowhere.txt")]);
});

test("a schedule takes the same file: the tasks of a time are a group of their own", async () => {
  const text = `group: nightly
tasks:
  fetch: {task_type: w}
  read: {task_type: w, needs: fetch, matrix: {n: 1..20}}
  report: {task_type: w, needs: read, on_dependency: run}`;
  writeFileSync(dir.join("nightly.yaml"), text);
  const put = (...flags: readonly string[]) =>
    run(["schedule", "put", "nightly", "--cron", "0 3 * * *", ...flags], {
      cwd: dir.path,
      env: environment(),
    });
  expect(await put("--run", "nightly.yaml")).toMatchObject({ code: 0 });
  const { body } = await hub.get("/schedule/list");
  const [schedule] = listOf(body["schedules"]);
  expect(listOf(schedule?.["tasks"])).toHaveLength(22);
  const { body: started } = await hub.post("/schedule/run", { name: "nightly" });
  const { group } = objectOf(JSON.stringify(started["task"]));
  expect(String(group)).toMatch(/^nightly-\d{8}T\d{6}Z$/);
  const { body: ended } = await hub.get(`/group/${String(group)}?wait=60`);
  expect(ended).toMatchObject({ done: true, total: 22, by_status: { completed: 22 } });
  expect(await put("--run", "nightly.yaml", "Title too")).toMatchObject({ code: 2 });
  expect(await put()).toMatchObject({ code: 2 });
  writeFileSync(dir.join("files.yaml"), "tasks: {a: {files: nightly.yaml}}");
  expect(await put("--run", "files.yaml")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("tasks.a.files"),
  });
});
