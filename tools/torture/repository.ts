/**
 * Coding agents with a repository: several workers with two tasks at once work in one repository, with a program that
 * imitates agents which work, hang, refuse, are signed out, commit by themselves, edit nothing, change one line or make
 * repositories. Workers and agents are killed at random. At the end every task must have its branch and a patch that
 * makes the branch of its base, and nothing else may be different or left.
 */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LuxHub, type Task } from "../../src/client/luxhub.ts";
import { Hub, Program, SECRET, TempDir, listOf } from "../../test/e2e/program.ts";
import { OWN_HOST } from "../../test/support/keeper.ts";
import { randomFrom } from "./random.ts";
import type { Figure, Section } from "./section.ts";

const TASKS = 40;
const FILES = 2_000;
const WORKERS = 4;
const KILLS = 24;
const KILL_AFTER_MS = { least: 400, most: 1_600 };
const SIGNED_OUT_MS = 15_000;
const IDLE_S = 6;
const LOOK_EVERY_MS = 300;
const FOUND_MAX = 40;
const PLANTED = { MODEL_API_KEY: 'planted"key\\of-the-model', GITHUB_TOKEN: "planted-token-of-github" };
/** What each secret has, however it is written. */
const MARKS = ["key\\\\of-the-model", "key\\of-the-model", "planted-token", "of-github"];

/** What an imitated agent does, and how its task must end. */
const KINDS = [
  { kind: "work", status: "completed", share: 16 },
  { kind: "commit", status: "completed", share: 6 },
  { kind: "line", status: "completed", share: 4 },
  { kind: "nothing", status: "completed", share: 3 },
  { kind: "branch", status: "completed", share: 3 },
  { kind: "login", status: "completed", share: 2 },
  { kind: "hang", status: "failed", share: 2 },
  { kind: "refuse", status: "failed", share: 2 },
  { kind: "nested", status: "failed", share: 2 },
] as const;

/** What it does by the first word of the title. A run of `work` may end itself in the middle. */
const AGENT = `
[ ! -e "$DIR/signed-out-$LUXHUB_NODE_ID" ] || { echo "Not logged in: $GITHUB_TOKEN" >&2; exit 1; }
kind=\${LUXHUB_TASK_TITLE%% *}; n=\${LUXHUB_TASK_TITLE##* }
echo $$ > "$DIR/pids/$$"; trap 'rm -f "$DIR/pids/$$"' EXIT
say() { printf '{"answer": "%s", "out": 5}\\n' "$1"; }
result() { printf '%s\\n' "$1" > .luxhub/result.json; }
say "began with $GITHUB_TOKEN"
echo "$MODEL_API_KEY" >&2
echo '{"note": "'"$GITHUB_TOKEN"'", "usage": {"model": "'"$GITHUB_TOKEN"'", "input_tokens": 1, "output_tokens": 1}}' >> .luxhub/.luxhub-report
mkdir -p .luxhub/out; echo "$MODEL_API_KEY" > .luxhub/out/log.txt
case $kind in
  hang) echo half > half.txt; sleep 600;;
  refuse) result '{"failed": "I will not", "retry": false}'; exit 0;;
  nested) git init -q inner; echo x > x.txt; echo y > inner/y.txt;;
  line) echo "line $n" > dir-0/file-0.txt;;
  nothing) ;;
  branch) git checkout -q -b "aside-$n" && git config user.name x && echo z > z.txt && git add . && git commit -qm Aside && echo more >> z.txt;;
  *) for i in 1 2 3; do
       echo "$n $i" >> "dir-$((n % 20))/new-$n-$i.txt"; echo "$n" >> "dir-$i/file-$i.txt"; rm -f "dir-4/file-$((n * 20 + 4)).txt"
       [ $kind = work ] || { git add --all && git commit -qm "Step $i of $n"; }
       sleep 0.$((RANDOM % 7 + 1))
     done;;
esac
[ $kind != work ] || [ $((RANDOM % 4)) -gt 0 ] || kill -9 $$
result '{"problem": "p", "improvement": "i '"$GITHUB_TOKEN"'", "lesson": "none", "output": {"n": '"$n"'}}'
say done
`;
const AGENT_TABLE = `
[agent.imitated]
program = "bash"
args = ["agent.sh"]
[agent.imitated.reads]
answer = { at = "answer" }
output_tokens = { at = "out", take = "sum" }
`;

type Report = {
  readonly faults: string[];
  killed: number;
  completed: number;
  failed: number;
  patches: number;
};

class Scene implements AsyncDisposable {
  readonly dir = new TempDir();
  readonly repo = this.dir.join("the repository");
  readonly hub: Hub;
  readonly client: LuxHub;
  readonly #workers: Program[] = [];
  readonly logs: string[] = [];
  isClosing = false;

  private constructor(hub: Hub) {
    this.hub = hub;
    this.client = new LuxHub({ url: `http://${OWN_HOST}:${hub.port}`, secret: SECRET });
  }

  static async start(files: number): Promise<Scene> {
    const data = new TempDir();
    const scene = new Scene(await Hub.start({ data: data.path, host: OWN_HOST }));
    scene.data = data;
    for (const name of ["the repository", "pids", "cwd"]) mkdirSync(scene.dir.join(name));
    scene.git("init", "--quiet");
    scene.git("config", "user.name", "Ada");
    scene.git("config", "user.email", "ada@example.org");
    for (let i = 0; i < files; i++) {
      mkdirSync(join(scene.repo, `dir-${i % 20}`), { recursive: true });
      writeFileSync(join(scene.repo, `dir-${i % 20}/file-${i}.txt`), `file ${i}\n`.repeat(20));
    }
    scene.git("add", ".");
    scene.git("commit", "--quiet", "-m", "First");
    writeFileSync(join(scene.repo, "dir-0/file-0.txt"), "not committed\n");
    writeFileSync(join(scene.repo, "mine.txt"), "not added\n");
    scene.git("status");
    const table = AGENT_TABLE.replace("agent.sh", scene.dir.join("agent.sh"));
    writeFileSync(scene.dir.join("cwd/worker.toml"), table, { mode: 0o600 });
    writeFileSync(scene.dir.join("agent.sh"), AGENT);
    return scene;
  }

  data = new TempDir();

  git(...args: readonly string[]): string {
    return this.gitWith({}, ...args);
  }

  /** @throws {Error} with what git said */
  gitWith(more: Readonly<Record<string, string>>, ...args: readonly string[]): string {
    const env = { PATH: process.env["PATH"], HOME: this.dir.path, GIT_OPTIONAL_LOCKS: "0", ...more };
    const { exitCode, stdout, stderr } = Bun.spawnSync(["git", "-C", this.repo, ...args], { env });
    if (exitCode !== 0) throw new Error(`git ${args[0]}: ${stderr.toString()}`);
    return stdout.toString().trimEnd();
  }

  startWorker(i: number): void {
    const types = i === 0 ? "coding,login" : "coding";
    const flags = ["--capabilities", types, "--concurrency", "2", "--idle-timeout", String(IDLE_S)];
    const words = ["worker", "--agent", "imitated", "--node", `w${i}`, "--repo", this.repo, "--grace", "2"];
    const env = {
      ...PLANTED,
      LUXHUB_URL: `http://${OWN_HOST}:${this.hub.port}`,
      LUXHUB_SECRET: SECRET,
      XDG_STATE_HOME: this.dir.join("state"),
      HOME: this.dir.path,
      DIR: this.dir.path,
      BASH_ENV: "",
    };
    const worker = new Program([...words, ...flags], { cwd: this.dir.join("cwd"), env });
    this.#workers[i] = worker;
    void worker.ended.then((code) => {
      this.logs.push(worker.stderr, worker.stdout);
      if (this.isClosing) return;
      if (code !== null) this.logs.push(`ENDED w${i} with ${code}: ${worker.stderr}`);
      this.startWorker(i);
    });
  }

  killWorker(i: number): void {
    this.#workers[i]?.child.kill("SIGKILL");
  }

  /** Kills an agent that works, and no other process that may have got its number. */
  killAgent(at: number): void {
    const pids = readdirSync(this.dir.join("pids")).filter((pid) => {
      const path = `/proc/${pid}/cmdline`;
      return existsSync(path) && readFileSync(path, "utf8").includes("agent.sh");
    });
    const pid = Number(pids[Math.floor(at * pids.length)]);
    if (pid > 0) process.kill(pid, "SIGKILL");
  }

  async stopWorkers(): Promise<void> {
    this.isClosing = true;
    for (const { child } of this.#workers) child.kill("SIGTERM");
    await Promise.all(this.#workers.map(({ ended }) => ended));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isClosing = true;
    for (const worker of this.#workers) await worker[Symbol.asyncDispose]();
    await this.hub[Symbol.asyncDispose]();
    this.dir[Symbol.dispose]();
    this.data[Symbol.dispose]();
  }
}

/** Every file of the user's: all but what branches and worktrees of tasks are made of. */
function contentOf(scene: Scene): string {
  const OF_TASKS =
    /^\.git\/(?:objects|worktrees|packed-refs|(?:logs\/)?refs\/heads\/(?:luxhub|aside)|refs\/luxhub|logs\/refs\/luxhub|config$)/;
  return readdirSync(scene.repo, { recursive: true, encoding: "utf8" })
    .filter((path) => !OF_TASKS.test(path) && statSync(join(scene.repo, path)).isFile())
    .toSorted()
    .map((path) => `${path} ${Bun.hash(readFileSync(join(scene.repo, path)))}`)
    .join("\n");
}

async function runRepository(scale: number, seed: number, progress: (line: string) => void): Promise<Report> {
  const random = randomFrom(seed);
  const report: Report = { faults: [], killed: 0, completed: 0, failed: 0, patches: 0 };
  await using scene = await Scene.start(Math.max(200, Math.round(FILES * scale)));
  const before = contentOf(scene);
  const titles = KINDS.flatMap(({ kind, share }) =>
    Array.from(
      { length: Math.max(kind === "line" ? 2 : 1, Math.round((share * scale * TASKS) / 40)) },
      (_, i) => ({
        kind,
        title: `${kind} ${i}`,
      }),
    ),
  ).toSorted(() => random() - 0.5);
  writeFileSync(scene.dir.join("signed-out-w0"), "");
  const ids: string[] = [];
  for (const { kind, title } of titles) {
    const task_type = kind === "login" ? "login" : "coding";
    // They fail each time.
    const attempts = kind === "hang" || kind === "nested" ? { max_attempts: 3 } : {};
    const { task_id } = await scene.client.tasks.create({
      ...{ title, description: "d", task_type, backoff_s: 0, timeout_s: 10 },
      ...attempts,
    });
    ids.push(task_id);
  }
  for (let i = 0; i < WORKERS; i++) scene.startWorker(i);
  const signedIn = setTimeout(() => rmSync(scene.dir.join("signed-out-w0"), { force: true }), SIGNED_OUT_MS);
  const kills = Math.max(4, Math.round(KILLS * scale));
  let nextAt = Date.now() + KILL_AFTER_MS.most;
  let tasks: readonly Task[] = [];
  try {
    for (;;) {
      tasks = await Promise.all(ids.map(async (task_id) => (await scene.client.tasks.get({ task_id })).task));
      const unfinished = tasks.filter(({ status }) => status !== "completed" && status !== "failed");
      if (unfinished.length === 0) break;
      if (report.killed < kills && Date.now() > nextAt) {
        if (random() < 0.5) scene.killWorker(Math.floor(random() * WORKERS));
        else scene.killAgent(random());
        report.killed++;
        nextAt = Date.now() + KILL_AFTER_MS.least + random() * (KILL_AFTER_MS.most - KILL_AFTER_MS.least);
        progress(`${report.killed} killed, ${unfinished.length} of ${tasks.length} tasks unfinished`);
      }
      await Bun.sleep(LOOK_EVERY_MS);
    }
  } finally {
    clearTimeout(signedIn);
  }
  await scene.stopWorkers();
  for (const [i, task] of tasks.entries()) await checkTask(task, titles[i]?.kind ?? "", scene, report);
  checkRest(scene, before, report);
  await scene.hub.stop();
  checkSecrets(scene, report);
  return report;
}

async function checkTask(task: Task, kind: string, scene: Scene, report: Report): Promise<void> {
  const { task_id, title, status, result, failure } = task;
  const wanted = KINDS.find((known) => known.kind === kind)?.status;
  report[status === "completed" ? "completed" : "failed"]++;
  const fault = (what: string): number => report.faults.push(`${title} (${task_id}): ${what}`);
  if (status !== wanted) fault(`${status}: ${JSON.stringify(failure)}`);
  if (status === "failed" && !failure?.message) fault("failed without a reason");
  if (kind === "login") {
    const { body } = await scene.hub.get(`/events?task_id=${task_id}&limit=500`);
    const events = listOf(body["events"]);
    if (events.length === 0 || events.some((event) => event["kind"] === "task.attempt_failed"))
      fault("the outage cost an attempt");
  }
  const { files } = await scene.client.files.list({ task_id });
  const patches = files.filter(({ name }) => name === "changes.patch");
  const output: Readonly<Record<string, unknown>> = { ...Object(result?.["output"]) };
  // An attempt that was killed before it had changed anything, or with its worker, may have been the last.
  const hasSaved = failure?.kind === "stalled" || failure?.message?.includes("not all work") === true;
  const hasChanges = status === "completed" ? Number(output["files"]) > 0 : hasSaved;
  if (patches.length !== (hasChanges ? 1 : 0) && (hasChanges || status === "completed"))
    return void fault(`${patches.length} patches; ${JSON.stringify(failure)}`);
  const [patch] = patches;
  if (!patch) return;
  const { branch, base } = patch.metadata;
  if (status === "completed" && branch !== output["branch"]) fault(`a patch of ${String(branch)}`);
  const path = scene.dir.join("patch");
  await Bun.write(path, await scene.client.files.download({ file_id: patch.file_id }));
  const index = { GIT_INDEX_FILE: scene.dir.join("index") };
  try {
    scene.gitWith(index, "read-tree", String(base));
    scene.gitWith(index, "apply", "--cached", path);
    if (scene.gitWith(index, "write-tree") !== scene.git("rev-parse", `${String(branch)}^{tree}`))
      fault("the patch does not make the branch");
    report.patches++;
  } catch (error) {
    fault(String(error));
  }
}

/** The user's checkout, the repository, and what must be gone. */
function checkRest(scene: Scene, before: string, { faults }: Report): void {
  const now = contentOf(scene).split("\n");
  const then = new Set(before.split("\n"));
  for (const line of now.filter((row) => !then.has(row))) faults.push(`the checkout has changed: ${line}`);
  if (now.length < then.size) faults.push(`${then.size - now.length} files of the checkout are gone`);
  const worktrees = scene.git("worktree", "list").split("\n");
  for (const line of worktrees.slice(1)) faults.push(`left: ${line}`);
  const state = scene.dir.join("state/luxhub-agents");
  for (const node of readdirSync(state))
    for (const name of readdirSync(join(state, node))) {
      // Only the session of a task that has not ended stays, and all have: another worker has ended it.
      if (existsSync(join(state, node, name, "work"))) faults.push(`left: ${node}/${name}/work`);
    }
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
    try {
      const cwd = readFileSync(`/proc/${pid}/environ`, "utf8");
      if (cwd.includes(`DIR=${scene.dir.path}\0`))
        faults.push(`left: process ${pid} ${readFileSync(`/proc/${pid}/cmdline`, "utf8")}`);
    } catch {
      // It has ended.
    }
  const check = scene.git("fsck", "--no-dangling", "--no-progress");
  if (check !== "") faults.push(`git fsck: ${check}`);
}

function checkSecrets(scene: Scene, { faults }: Report): void {
  const look = (where: string, bytes: Buffer): void => {
    for (const mark of MARKS) if (bytes.includes(mark)) faults.push(`a secret (${mark}) is in ${where}`);
  };
  look("the logs of the workers", Buffer.from(scene.logs.join("\n")));
  for (const dir of [scene.data.path, scene.dir.join("state")])
    for (const path of readdirSync(dir, { recursive: true, encoding: "utf8" }))
      if (statSync(join(dir, path)).isFile()) look(path, readFileSync(join(dir, path)));
  for (const line of scene.logs.filter((text) => text.startsWith("ENDED"))) faults.push(line);
}

export const repositorySection: Section = {
  name: "repository",
  title: "Coding agents with a repository",
  limitMs: 15 * 60_000,
  async run(scale, seed, progress) {
    const { faults, killed, completed, failed, patches } = await runRepository(scale, seed, progress);
    for (const fault of faults.slice(0, FOUND_MAX)) progress(fault);
    return [
      { what: "Workers and agents killed", value: String(killed), goal: "", held: true },
      {
        what: "Tasks completed, and failed with a reason",
        value: `${completed}, ${failed}`,
        goal: "",
        held: true,
      },
      { what: "Patches that make the branch of their base", value: String(patches), goal: "", held: true },
      {
        what: "Faults: ends, patches, the user's checkout, what is left, attempts of an outage, secrets",
        value: String(faults.length),
        goal: "0",
        held: faults.length === 0,
      } satisfies Figure,
    ];
  },
};
