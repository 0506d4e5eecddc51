/**
 * `luxhub worker --repo` with the real program, the real git and a real hub: what each attempt leaves, what the operator
 * puts around it, attempts that stall, and secrets (docs/coding-agents.md).
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { PROJECT } from "../support/executable.ts";
import { OWN_HOST } from "../support/keeper.ts";
import { Hub, Program, SECRET, TempDir, listOf, objectOf, run, until } from "./program.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Two signals within less are taken for one. */
const SECOND_SIGNAL_MS = 250;
const dir = new TempDir();
const repo = dir.join("repo");
let hub: Hub;

function git(...args: readonly string[]): string {
  const identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
  const { exitCode, stdout, stderr } = Bun.spawnSync(["git", ...identity, "-C", repo, ...args]);
  if (exitCode !== 0) throw new Error(`git ${args.join(" ")}: ${stderr.toString()}`);
  return stdout.toString().trimEnd();
}

beforeAll(async () => {
  mkdirSync(repo);
  git("init", "--quiet");
  writeFileSync(dir.join("repo/a.txt"), "one\n");
  git("add", ".");
  git("commit", "--quiet", "-m", "First");
  writeFileSync(dir.join("repo/a.txt"), "not committed\n");
  hub = await Hub.start({ data: dir.join("data"), host: OWN_HOST });
});
afterAll(async () => {
  expect(readFileSync(dir.join("repo/a.txt"), "utf8")).toBe("not committed\n");
  expect(git("status", "--porcelain")).toBe(" M a.txt");
  expect(git("worktree", "list").split("\n")).toHaveLength(1);
  await hub[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

function environment(): Record<string, string> {
  const url = `http://${OWN_HOST}:${hub.port}`;
  return { LUXHUB_URL: url, LUXHUB_SECRET: SECRET, XDG_STATE_HOME: dir.join("state"), DIR: dir.path };
}

function worker(node: string, what: readonly string[], env: Fields = {}, cwd = dir.path): Program {
  const words = ["worker", "--node", node, "--capabilities", node, "--repo", repo, "--log", "json", ...what];
  return new Program(words, { cwd, env: { ...environment(), ...(env as Record<string, string>) } });
}

async function create(node: string, fields: Fields = {}): Promise<string> {
  const task = { title: node, description: "d", task_type: node, backoff_s: 0, ...fields };
  const { body } = await hub.post("/task/create", task);
  return String(body["task_id"]);
}

async function ended(taskId: string): Promise<Fields> {
  for (;;) {
    const { body } = await hub.get(`/task/${taskId}?wait=60`);
    const task = objectOf(JSON.stringify(body["task"]));
    if (task["status"] === "completed" || task["status"] === "failed") return task;
  }
}

async function filesOf(task_id: string): Promise<ReadonlyMap<string, string>> {
  const { body } = await hub.get(`/file/list?task_id=${task_id}`);
  const contents = listOf(body["files"]).map(async ({ name, url }) => {
    const response = await fetch(`http://${OWN_HOST}:${hub.port}${url}`, {
      headers: { "X-Matrix-Secret": SECRET },
    });
    return [String(name), await response.text()] as const;
  });
  return new Map(await Promise.all(contents));
}

const resultOf = ({ result }: Fields): Fields => objectOf(JSON.stringify(result));

test("an attempt that fails keeps its branch and its patch, and the next one goes on there", async () => {
  const script = `
    if [ -e b.txt ]; then echo two >> b.txt; mkdir -p .luxhub/out; cp b.txt .luxhub/out/copy.txt; echo done; exit 0; fi
    echo one > b.txt; echo 'it broke'; exit 1`;
  const id = await create("goes-on");
  await using program = worker("goes-on", ["--", "sh", "-c", script]);
  const task = await ended(id);
  program.child.kill();
  await program.ended;
  expect(task).toMatchObject({ status: "completed", attempts: 1, failure: { message: "it broke" } });
  const { output } = resultOf(task);
  const branch = git("branch", "--list", `luxhub/${id.slice(0, 8)}-goes-on`, "--format=%(refname:short)");
  const base = git("rev-parse", "HEAD");
  expect(output).toEqual({ branch, base, commits: 2, files: 1, insertions: 2, deletions: 0, answer: "done" });
  const files = await filesOf(id);
  expect([...files.keys()].toSorted()).toEqual(["changes.patch", "copy.txt"]);
  expect(files.get("changes.patch")).toContain("+one\n+two\n");
  expect(git("show", `${branch}:b.txt`)).toBe("one\ntwo");
});

test("no change is said, and makes no patch", async () => {
  const id = await create("idle-hands");
  const { code } = await worker("idle-hands", ["--once", "--", "true"]).ended.then((code) => ({ code }));
  expect(code).toBe(0);
  const task = await ended(id);
  expect(resultOf(task)["output"]).toMatchObject({ commits: 0, files: 0, insertions: 0, deletions: 0 });
  expect(task["outputs"]).toEqual([]);
});

/** What has become of the task until the next worker of the node starts, and whether it gets the patch. */
const AFTER_A_KILL: readonly [string, Fields, (id: string) => Promise<void>, boolean][] = [
  ["the node holds it still, and goes on", {}, async () => {}, true],
  [
    "it has failed",
    { timeout_s: 1, max_attempts: 1 },
    async (id) => expect(await ended(id)).toMatchObject({ status: "failed" }),
    true,
  ],
  [
    "another node has done it",
    { timeout_s: 1, max_attempts: 2 },
    async (task_id) => {
      await until(
        async () =>
          objectOf(JSON.stringify((await hub.get(`/task/${task_id}`)).body["task"]))["ready"] === true,
      );
      const about = { task_id, node_id: "another" };
      await hub.register("another");
      expect((await hub.post("/task/claim", about)).status).toBe(200);
      const result = { problem: "p", improvement: "i", lesson: "none" };
      expect((await hub.post("/task/complete", { ...about, result })).status).toBe(200);
    },
    false,
  ],
];

test.each(AFTER_A_KILL)("the work of a killed worker: %s", async (name, fields, meanwhile, isSent) => {
  const node = `killed-${AFTER_A_KILL.findIndex(([row]) => row === name)}`;
  const id = await create(node, fields);
  const TMPDIR = dir.join(`tmp-${node}`);
  mkdirSync(TMPDIR);
  const script = `if [ -e half.txt ]; then until [ -e "$DIR/go-on" ]; do sleep 0.05; done; exit 0; fi
    echo half > half.txt; touch "$DIR/is-half-${node}"; sleep 600`;
  await using first = worker(node, ["--", "sh", "-c", script], { TMPDIR });
  await until(() => existsSync(dir.join(`is-half-${node}`)));
  first.child.kill("SIGKILL");
  await first.ended;
  await meanwhile(id);
  await using second = worker(node, ["--", "sh", "-c", script], { TMPDIR });
  await until(() => second.stderr.includes("saved the work of an interrupted attempt"));
  const patch = (await filesOf(id)).get("changes.patch");
  expect(patch?.includes("+half\n") ?? false).toBe(isSent);
  writeFileSync(dir.join("go-on"), "");
  const task = await ended(id);
  if (isSent) expect(task["outputs"]).toHaveLength(1);
  if (Object.keys(fields).length === 0)
    expect(resultOf(task)["output"]).toMatchObject({ commits: 1, files: 1 });
  expect(git("show", `luxhub/${id.slice(0, 8)}-${node}:half.txt`)).toBe("half");
  second.child.kill();
  await second.ended;
  expect(readdirSync(dir.join(`state/luxhub-agents/node-${node}`))).toEqual(["lock"]);
  expect(readdirSync(TMPDIR)).toEqual([]);
});

test("the work of a worker that is stopped at once is on the hub, for the next machine", async () => {
  const id = await create("stopped");
  const script = 'echo half > half.txt; touch "$DIR/is-stopped"; sleep 600';
  await using program = worker("stopped", ["--grace", "1", "--", "sh", "-c", script]);
  await until(() => existsSync(dir.join("is-stopped")));
  program.child.kill();
  await until(() => program.stderr.includes("stopping: "));
  await Bun.sleep(SECOND_SIGNAL_MS);
  program.child.kill();
  await program.ended;
  const { body } = await hub.get(`/task/${id}`);
  expect(body["task"]).toMatchObject({ status: "open", attempts: 0 });
  expect((await filesOf(id)).get("changes.patch")).toContain("+half\n");
});

test("the work of a killed worker that does not come back is saved by the next one of the repository", async () => {
  const id = await create("gone", { timeout_s: 1, max_attempts: 1 });
  const script = 'echo half > half.txt; touch "$DIR/is-gone"; sleep 600';
  await using first = worker("gone", ["--", "sh", "-c", script]);
  await until(() => existsSync(dir.join("is-gone")));
  first.child.kill("SIGKILL");
  await first.ended;
  expect(await ended(id)).toMatchObject({ status: "failed" });
  expect((await hub.post("/node/leave", { node_id: "gone" })).status).toBe(200); // as when nothing is heard of it
  await using second = worker("stays", ["--", "true"]);
  await until(async () => (await filesOf(id)).has("changes.patch"));
  second.child.kill();
  await second.ended;
});

test("workers of one name at two hubs do not share a directory", async () => {
  const id = await create("two-hubs");
  const script = 'touch "$DIR/is-two"; until [ -e "$DIR/go-two" ]; do sleep 0.05; done; echo made > made.txt';
  await using first = worker("two-hubs", ["--", "sh", "-c", script]);
  await until(() => existsSync(dir.join("is-two")));
  const LUXHUB_URL = `http://localhost:${hub.port}`;
  await using second = worker("two-hubs", ["--", "true"], { LUXHUB_URL });
  expect(await second.ended).toBe(5);
  writeFileSync(dir.join("go-two"), "");
  expect(resultOf(await ended(id))["output"]).toMatchObject({ files: 1 });
  first.child.kill();
  await first.ended;
});

test("several tasks at once have worktrees of one repository", async () => {
  const ids = await Promise.all([1, 2, 3, 4].map((n) => create("many", { title: "same" + (n % 2) })));
  const script = `echo "$LUXHUB_TASK_ID" > a.txt; touch "$DIR/many-$LUXHUB_TASK_ID"
    while [ $(ls "$DIR" | grep -c '^many-') -lt 4 ]; do sleep 0.05; done`;
  await using program = worker("many", ["--concurrency", "4", "--", "sh", "-c", script]);
  const tasks = await Promise.all(ids.map(ended));
  program.child.kill();
  await program.ended;
  const branches = tasks.map((task) => String(objectOf(JSON.stringify(resultOf(task)["output"]))["branch"]));
  expect(new Set(branches).size).toBe(4);
  for (const [i, branch] of branches.entries()) expect(git("show", `${branch}:a.txt`)).toBe(ids[i] ?? "");
});

test("before, after and wrap stand around each attempt; after also when before has failed", async () => {
  mkdirSync(dir.join("around"));
  writeFileSync(
    dir.join("around/worker.toml"),
    `before = ["sh", "-c", "echo before $LUXHUB_TASK_TITLE >> $DIR/around/log; [ $LUXHUB_TASK_TITLE != bad ] || { echo no >&2; exit 3; }"]
     after = ["sh", "-c", "echo after $LUXHUB_TASK_TITLE >> $DIR/around/log"]
     wrap = ["env", "WRAPPED={dir} {git}"]`,
  );
  chmodSync(dir.join("around/worker.toml"), 0o600);
  const [good, bad] = [
    await create("around", { title: "good" }),
    await create("around", { title: "bad", max_attempts: 1 }),
  ];
  const command = ["--", "sh", "-c", 'echo "$WRAPPED" > w.txt; [ "${WRAPPED%% *}" = "$PWD" ]'];
  await using program = worker("around", command, {}, dir.join("around"));
  expect(await ended(good)).toMatchObject({ status: "completed" });
  expect(await ended(bad)).toMatchObject({ status: "failed", failure: { message: "before failed: no" } });
  program.child.kill();
  await program.ended;
  expect(readFileSync(dir.join("around/log"), "utf8")).toBe(
    "before good\nafter good\nbefore bad\nafter bad\n",
  );
  expect((await filesOf(good)).get("changes.patch")).toContain(`work ${repo}/.git`);
});

/** The recipe of the page after a mark. */
function recipe(name: string): string {
  const page = readFileSync(`${PROJECT}/docs/coding-agents.md`, "utf8");
  const [, text] = new RegExp(`<!-- ${name} -->\\n+\`\`\`toml\\n([^]*?)\`\`\``).exec(page) ?? [];
  if (text === undefined) throw new Error(`the page has no recipe ${name}`);
  return text;
}

/** Why a command does not work here; null: it does. */
function fault(...command: readonly string[]): string | null {
  if (Bun.which(command[0] ?? "") === null) return "is not installed";
  const { exitCode, stderr } = Bun.spawnSync([...command]);
  return exitCode === 0 ? null : stderr.toString().trim();
}
const FAULTS = {
  bubblewrap: fault("bwrap", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "true"),
  // No manager of our own: it moves every process of its control group.
  systemd: fault("systemd-run", "--user", "--scope", "--quiet", "true"),
};

for (const name of ["bubblewrap", "systemd"] as const)
  test.skipIf(FAULTS[name] !== null)(
    `the recipe for ${name}${FAULTS[name] === null ? "" : ` (skipped: ${FAULTS[name]})`}`,
    async () => {
      const [home, node] = [dir.join(`${name}-home`), `in-${name}`];
      mkdirSync(home);
      writeFileSync(`${home}/secret`, "of the user");
      const cwd = dir.join(`${name}-cwd`);
      mkdirSync(cwd);
      writeFileSync(`${cwd}/worker.toml`, recipe(name), { mode: 0o600 });
      const script = `
      cat '${home}/secret' && echo READ-HOME; touch '${repo}/.git/config' && echo WROTE-GIT
      (exec 3<>/dev/tcp/${OWN_HOST}/${hub.port}) 2>/dev/null && echo REACHED-HUB
      env | grep -q LUXHUB_SECRET && echo HAS-SECRET
      echo '{"note": "inside"}' >> .luxhub/.luxhub-report; sleep 1; echo made > made.txt; echo done`;
      const id = await create(node);
      await using program = worker(node, ["--once", "--", "bash", "-c", script], { HOME: home }, cwd);
      await program.ended;
      const task = await ended(id);
      expect(task).toMatchObject({ status: "completed", progress: "inside" });
      const { answer, files } = objectOf(JSON.stringify(resultOf(task)["output"]));
      expect(files).toBe(1);
      if (name === "bubblewrap") expect(answer).toBe("done");
      else expect(answer).toEndWith("done");
    },
  );

test("a link in place of the directory of the worker leads it nowhere", async () => {
  const outside = dir.join("outside");
  mkdirSync(`${outside}/out`, { recursive: true });
  writeFileSync(`${outside}/out/private.txt`, "of the user");
  const id = await create("linked");
  const script = `rm -r .luxhub; ln -s '${outside}' .luxhub; echo made > made.txt`;
  await using program = worker("linked", ["--once", "--", "sh", "-c", script]);
  const task = await ended(id);
  await program.ended;
  expect(resultOf(task)["output"]).toMatchObject({ files: 1 });
  expect([...(await filesOf(id)).keys()]).toEqual(["changes.patch"]);
});

test("a patch that an attempt has taken back is no longer that of the task", async () => {
  const script = `if [ -e b.txt ]; then rm b.txt; exit 0; fi; echo one > b.txt; exit 1`;
  const id = await create("takes-back");
  await using program = worker("takes-back", ["--", "sh", "-c", script]);
  const task = await ended(id);
  program.child.kill();
  await program.ended;
  expect(resultOf(task)["output"]).toMatchObject({ files: 0 });
  expect([...(await filesOf(id)).keys()]).toEqual([]);
});

test("what git cannot commit fails the attempt, with its place, and the other work is in the patch", async () => {
  const id = await create("nested", { max_attempts: 1 });
  await using program = worker("nested", ["--once", "--", "sh", "-c", "git init -q inner; echo c > c.txt"]);
  const task = await ended(id);
  await program.ended;
  expect(task).toMatchObject({ status: "failed", failure: { message: expect.stringContaining("inner") } });
  expect((await filesOf(id)).get("changes.patch")).toContain("c.txt");
});

test("before that hangs stalls, and after that hangs does not hold the worker's end", async () => {
  mkdirSync(dir.join("hangs"));
  writeFileSync(
    dir.join("hangs/worker.toml"),
    `before = ["sh", "-c", "[ $LUXHUB_TASK_TITLE != before ] || sleep 600"]
     after = ["sh", "-c", "[ $LUXHUB_TASK_TITLE != after ] || { touch $DIR/hangs/now; sleep 600; }"]`,
    { mode: 0o600 },
  );
  const flags = ["--idle-timeout", "1", "--grace", "1", "--", "true"];
  await using program = worker("hangs", flags, {}, dir.join("hangs"));
  const id = await create("hangs", { title: "before", max_attempts: 1 });
  expect(await ended(id)).toMatchObject({ status: "failed", failure: { kind: "stalled" } });
  const second = await create("hangs", { title: "after" });
  await until(() => existsSync(dir.join("hangs/now")));
  // A second signal at once is the first.
  await until(() => program.child.kill() === undefined && program.stderr.includes("stopping now"));
  expect(await program.ended).toBe(0);
  expect((await hub.get(`/task/${second}`)).body).toMatchObject({ task: { status: "open", attempts: 0 } });
});

test("an attempt of which nothing is heard stalls; what prints or reports does not", async () => {
  const script = `case $LUXHUB_TASK_TITLE in
    hangs) sleep 600;;
    asks) echo '{"ask": {"question": "q", "within_s": 4}}' >> "$LUXHUB_REPORT"
      until grep -q timed_out "$LUXHUB_ANSWERS"; do sleep 0.2; done;;
    prints) for i in 1 2 3 4 5 6; do echo $i; sleep 0.4; done;;
    notes) for i in 1 2 3 4; do echo '{"note": "'$i'"}' >> "$LUXHUB_REPORT"; sleep 0.6; done;; esac`;
  const titles = ["hangs", "prints", "notes", "asks"];
  const ids = await Promise.all(titles.map((title) => create("stalls", { title, max_attempts: 1 })));
  await using program = worker("stalls", [
    "--concurrency",
    "4",
    "--idle-timeout",
    "2",
    "--",
    "sh",
    "-c",
    script,
  ]);
  const [hangs, ...others] = await Promise.all(ids.map(ended));
  program.child.kill();
  await program.ended;
  expect(hangs).toMatchObject({
    status: "failed",
    failure: { kind: "stalled" },
  });
  for (const task of others) expect(task).toMatchObject({ status: "completed" });
});

test("secrets of the environment are nowhere in the hub and in the log", async () => {
  const secrets = { MY_API_KEY: 'planted-key-"1234', OTHER: "planted-other-5678" };
  const script = `
    printf '%s' "$MY_API_KEY" | head -c 8; sleep 0.2; printf '%s' "$MY_API_KEY" | tail -c +9
    echo "$OTHER" >&2; echo "$MY_API_KEY" > c.txt
    mkdir -p .luxhub/out; echo "$OTHER" > .luxhub/out/o.txt
    echo '{"note": "'"$OTHER"'", "checkpoint": {"key": "'"$OTHER"'"}}' >> "$LUXHUB_REPORT"
    [ "$LUXHUB_TASK_TITLE" = good ] || exit 1`;
  const ids = await Promise.all(["good", "bad"].map((title) => create("masked", { title, max_attempts: 1 })));
  await using program = worker("masked", ["--mask", "OTHER", "--", "sh", "-c", script], secrets);
  const tasks = await Promise.all(ids.map(ended));
  program.child.kill();
  await program.ended;
  expect(tasks.map(({ status }) => status)).toEqual(["completed", "failed"]);
  const seen = [program.stderr, program.stdout];
  for (const id of ids) {
    for (const [name, text] of await filesOf(id)) seen.push(name, text);
    for (const path of [`/task/${id}?context=1`, `/task/${id}/output`, `/events?task_id=${id}`])
      seen.push(JSON.stringify((await hub.get(path)).body));
  }
  const all = seen.join("\n");
  expect(all).toContain("***");
  for (const secret of ["planted-key", "planted-other", "1234", "5678"]) expect(all).not.toContain(secret);
  // The branch is the user's own: there the work is as it is.
  const { branch } = objectOf(JSON.stringify(resultOf(tasks[0] ?? {})["output"]));
  expect(git("show", `${String(branch)}:c.txt`)).toBe(secrets.MY_API_KEY);
});

test.each([
  ["", "reviewed", ["--workdir", dir.join("judge")]],
  [".luxhub/", "reviewed-here", ["--repo", repo]],
])("a reviewer passes or rejects a task by its patch (%s)", async (own, node, place) => {
  const id = await create(node, { review: `capability:judge-${node}` });
  const script = `if [ -e b.txt ]; then echo good > b.txt; else echo bad > b.txt; fi`;
  await using author = worker(node, ["--", "sh", "-c", script]);
  const judge = `patch=$(cat ${own}context/files/1/changes.patch)
    case $patch in *+good*) echo '{"verdict": "pass"}';; *+bad*) echo '{"verdict": "reject", "note": "it is bad"}';; esac`;
  const words = ["worker", "--node", `judge-${node}`, "--capabilities", `judge-${node}`, ...place];
  await using reviewer = new Program([...words, "--", "sh", "-c", judge], {
    cwd: dir.path,
    env: environment(),
  });
  let task = await ended(id);
  // Until then it is completed, and waits for its review.
  await until(async () => (task = await ended(id))["waiting_for"] !== "review");
  for (const program of [author, reviewer]) program.child.kill();
  await Promise.all([author.ended, reviewer.ended]);
  expect(task).toMatchObject({ status: "completed" });
  expect(resultOf(task)["output"]).toMatchObject({ commits: 2, files: 1 });
  expect((await filesOf(id)).get("changes.patch")).toContain("+good");
});

test("people take the changes of a task: task diff and task apply", async () => {
  const id = await create("taken");
  await using program = worker("taken", [
    "--once",
    "--",
    "sh",
    "-c",
    "echo two >> a.txt; printf 'x\\033[31m' > c.txt",
  ]);
  await program.ended;
  const copy = dir.join("copy");
  Bun.spawnSync(["git", "clone", "--quiet", repo, copy]);
  const inCopy = (...words: readonly string[]) => run(words, { cwd: copy, env: environment() });
  const diff = await inCopy("task", "diff", id);
  expect(diff.stdout).toBe((await filesOf(id)).get("changes.patch") ?? "");
  // Git itself would apply nothing below a directory, and say nothing.
  mkdirSync(`${copy}/below`);
  expect(await run(["task", "apply", id], { cwd: `${copy}/below`, env: environment() })).toMatchObject({
    code: 0,
  });
  expect(readFileSync(dir.join("copy/a.txt"), "utf8")).toBe("one\ntwo\n");
  expect(await inCopy("task", "apply", id)).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("--force"),
  });
  writeFileSync(dir.join("copy/a.txt"), "quite different\n");
  Bun.spawnSync(["git", "-C", copy, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qam", "Other"]);
  expect(await inCopy("task", "apply", id)).toMatchObject({ code: 1 });
  expect(await run(["task", "apply", id], { cwd: dir.path, env: environment() })).toMatchObject({ code: 1 });
  const other = await create("untaken");
  expect(await inCopy("task", "diff", other)).toMatchObject({ code: 3 });
});

test.each([
  ["--repo /nowhere", ["--repo", "/nowhere"], "nowhere"],
  ["--base nowhere", ["--repo", repo, "--base", "nowhere"], "there is no commit nowhere"],
  ["--fetch nowhere", ["--repo", repo, "--fetch", "nowhere"], "nowhere"],
  ["--push without --repo", ["--push", "origin"], "need --repo"],
])("%s is refused at the start", async (_, flags, reason) => {
  const words = ["worker", "--node", "n", ...flags, "--", "true"];
  const { code, stderr } = await run(words, { cwd: dir.path, env: environment() });
  expect([code, stderr]).toEqual([2, expect.stringContaining(reason)]);
});
