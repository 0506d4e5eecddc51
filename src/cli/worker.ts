/**
 * `luxhub worker`: does the tasks of a hub by running a command, or an AI agent, for each. The typed client's worker
 * takes and reports the tasks.
 */
import { mkdirSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { isatty } from "node:tty";
import type { Environment } from "../config.ts";
import { directFetch } from "../client/http.ts";
import { HubUnreachable, LuxHub, LuxHubError, type Task, type WorkerEvent } from "../client/index.ts";
import { NODE_ID_MAX_CHARS } from "../domain/limits.ts";
import { systemClock } from "../lib/clock.ts";
import { didYouMean } from "../lib/closest.ts";
import { parseExact } from "../lib/exact-json.ts";
import { type Log, openLog } from "../lib/log.ts";
import { cleanAgentDirs, doAgentTask } from "./agent-task.ts";
import { AGENT_NAMES, type Agent, findAgent, readAround } from "./agents.ts";
import { UsageError } from "./arguments.ts";
import { eraseFromEnvironmentBlock } from "./environment-block.ts";
import { EXIT } from "./exit-codes.ts";
import { openLogOutput } from "./log-output.ts";
import { type Server, ownCall } from "./mcp-clients.ts";
import { type Remote, type ClientRuns, printError, reportFault } from "./remote.ts";
import { detectResources } from "./resources.ts";
import { endingSignals, onStarterExit } from "./signals.ts";
import type { Values } from "./values.ts";
import { type Claim, MARK, claimDir, takeWorkerLock } from "./worker-lock.ts";
import { FOREVER, type Transfer } from "./task-files.ts";
import { GitError, Repository } from "./repository.ts";
import { SecretMask, secretsIn } from "./secret-mask.ts";
import { sendLeft } from "./task-repository.ts";
import { CommandMissing, type TaskOptions, cleanWorkDir, doTask } from "./worker-task.ts";

const NAME = "worker";
const NODE_DIR = "node-";
const GRACE_S = 10;
/** A hanging agent holds its task no longer. */
const AGENT_IDLE_MS = 15 * 60_000;
/** Beside the grace of the command, so that a transfer of files can end too. */
const GRACE_MORE_MS = 5_000;
/** JavaScript's timers cannot wait longer: the hub alone enforces a longer limit. */
const TIMER_MAX_MS = 2 ** 31 - 1;
/** Ctrl-C may arrive twice at once: from the terminal, and from a parent that forwards it. */
const SECOND_SIGNAL_MS = 200;
const STANDARD_ERROR = 2;

export const RUNS: ClientRuns = { worker: work };

async function work(remote: Remote): Promise<number> {
  const { url, urls, secret, values, env, words } = remote;
  const agent = agentOf(values);
  const nodeId = values.text("node") ?? remote.nodeId ?? nodeOf(agent);
  const concurrency = values.whole("concurrency", 1) ?? 1;
  const isOnce = values.has("once");
  if (isOnce && concurrency > 1) throw new UsageError("--once does one task, not --concurrency", NAME);
  if ((agent !== null) === words.length > 0)
    throw new UsageError("worker needs a command after --, or --agent NAME without one", NAME);
  const capabilities = values.text("capabilities");
  const untyped = values.has("untyped");
  const command = commandOf(agent === null ? words : [agent.program], env);
  if (agent !== null && capabilities === undefined && !untyped)
    throw new UsageError(
      "--agent needs --capabilities LIST, the types of the tasks that the agent may do, or --untyped for tasks of every type and without one",
      NAME,
    );
  if (values.has("mcp") && !agent?.mcp)
    throw new UsageError("--mcp is for the agents claude, codex, gemini and opencode", NAME);
  if (values.has("mcp") && values.has("repo") && agent?.mcp?.file)
    throw new UsageError(
      `${agent.name} takes --mcp from a file of its directory, which --repo would commit: use luxhub mcp-config ${agent.name}`,
      NAME,
    );
  const repository = await repositoryOf(values, env);
  const mask = new SecretMask([
    ...(secret === undefined ? [] : [secret]),
    ...secretsIn(env, values.texts("mask")),
  ]);
  const signals = new Signals();
  const format = values.choice("log", ["pretty", "json"]) ?? "pretty";
  const output = openLogOutput(
    (lines) => log.warn("lines of the log could not be written", { lost: lines }),
    Bun.stderr,
  );
  const colour = isatty(STANDARD_ERROR) && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  const log = openLog({ format, level: "info", colour }, systemClock().now, output.write);
  const onIgnored = (fields: readonly string[]): void =>
    log.warn("the hub ignored fields of a request: it may be older than this luxhub", {
      fields: fields.join(", "),
    });
  const hub = new LuxHub({
    url: urls,
    secret,
    parseJson: parseExact,
    onIgnored,
    onHubs: hubsLog(remote, log),
    fetch: remote.fetch,
    ...connectionLog(log),
  });

  const onStop = (): void => log.info("stopping: takes no more tasks, finishes those it has");
  signals.stop.signal.addEventListener("abort", () => (isOnce ? null : onStop()));
  const onRelease = (): void => log.warn("stopping now: ends the commands, gives their tasks back");
  signals.release.signal.addEventListener("abort", onRelease);

  // A command can read the environment of its parent process, where the worker's secret may be.
  const isErased = eraseFromEnvironmentBlock((name) => name.startsWith("LUXHUB_") && name !== MARK);
  const isThere = Boolean(env["LUXHUB_SECRET"] || env["LUXHUB_ADMIN_KEY"]);
  if (!isErased && isThere && process.platform === "linux")
    log.warn("a command can read this worker's secret in /proc, because /proc/self/mem cannot be written");
  const tasksDir = values.text("workdir") ?? (agent || repository ? agentDir(env) : null);
  const workDir = tasksDir === null ? null : makeWorkDir(tasksDir, nodeId);
  const lock = takeWorkerLock(url, nodeId, workDir, env);
  if (typeof lock === "string") {
    const owner = lock === "" ? "" : ` (process ${lock})`;
    printError(
      `a worker for node ${nodeId} runs on this machine already${owner}: give each an id of its own`,
    );
    return EXIT.CONFLICT;
  }
  log.info(`${nodeId} ${takesTypes(capabilities, untyped)}`);
  try {
    if (lock.endedProcesses > 0)
      log.warn("ended the processes that a killed worker left running", { processes: lock.endedProcesses });
    if (repository !== null && workDir !== null)
      await recover(repository, workDir, signals.stop.signal, { hub, nodeId, log, mask });
    if (workDir !== null) {
      cleanWorkDir(workDir, log);
      cleanAgentDirs(workDir, log);
    }
    const options: TaskOptions = {
      hub,
      nodeId,
      command,
      // Without the worker's own settings, among them a secret that a task might make the command use.
      env: {
        // In upper case, because Windows ignores the case of their names.
        ...Object.fromEntries(
          Object.entries(env).filter(([name]) => !name.toUpperCase().startsWith("LUXHUB_")),
        ),
        LUXHUB_URL: urls,
        LUXHUB_NODE_ID: nodeId,
        LUXHUB_SECRET: values.has("pass-secret") ? secret : undefined,
        ...lock.mark,
      },
      workDir,
      repository,
      mcpServer: values.has("mcp") ? hubServer(remote, nodeId, lock.runsDir) : null,
      runsDir: lock.runsDir,
      around: readAround(),
      mask,
      timeoutMs: msOf(values, "timeout"),
      idleMs: msOf(values, "idle-timeout") ?? (agent === null ? null : AGENT_IDLE_MS),
      graceMs: msOf(values, "grace") ?? GRACE_S * 1_000,
      sendsOutput: !values.has("no-output"),
      log,
    };
    let isMissing = false;
    let completed = 0;
    await warnOfOther(hub, nodeId, signals.stop.signal, log);
    await hub.worker(
      nodeId,
      async (task, context) => {
        try {
          const limited = { ...options, timeoutMs: timeoutOf(task, options) };
          return agent === null
            ? await doTask(task, context, limited)
            : await doAgentTask(task, context, agent, limited);
        } catch (error) {
          // Every further task would fail the same way.
          if (error instanceof CommandMissing) {
            isMissing = true;
            signals.stop.abort();
          }
          throw error;
        }
      },
      {
        name: values.text("name"),
        capabilities,
        untyped,
        resources: resourcesOf(values),
        concurrency,
        signal: signals.stop.signal,
        release: signals.release.signal,
        graceMs: options.graceMs + GRACE_MORE_MS,
        timeoutMs: null, // that of the command ends it, and reports its last lines
        onEvent: (event) => {
          if (event.kind === "started" && isOnce) signals.stop.abort();
          if (event.kind === "completed") completed++;
          logEvent(event, log);
          // Before the command runs, which may kill the worker: the log must say which task that was.
          if (event.kind === "started") log.flush();
        },
      },
    );
    return isMissing || (isOnce && completed === 0 && !signals.isSent) ? EXIT.FAILED : EXIT.OK;
  } catch (error) {
    log.flush();
    return error === signals.stop.signal.reason ? EXIT.OK : reportFault(error);
  } finally {
    lock.release();
    signals.ignore();
    log.flush();
    await output.end();
  }
}

/** For the agent of a task: as the same node, without the tools that take and end tasks. */
function hubServer({ urls, secret = "", env, fetch: send }: Remote, nodeId: string, dir: string) {
  const secretFile = join(dir, "hub-secret");
  writeFileSync(secretFile, secret, { mode: 0o600 });
  return (taskId: string): Server => {
    const place = ["--url", urls, "--secret-file", secretFile, "--node", nodeId];
    return ownCall("mcp", [...place, "--task", taskId], send !== directFetch ? env : null);
  };
}

/** With the path of the program, so that it runs from any directory. @throws {UsageError} when there is none */
function commandOf([word = "", ...args]: readonly string[], env: Environment): readonly string[] {
  const path = Bun.which(word, { PATH: env["PATH"] ?? "" });
  if (path === null) throw new UsageError(`there is no program ${JSON.stringify(word)}`, NAME);
  return [resolve(path), ...args];
}

/** @throws {UsageError} when there is no such agent */
function agentOf(values: Values): Agent | null {
  const name = values.text("agent");
  if (name === undefined) return null;
  const agent = findAgent(name);
  if (agent) return agent;
  const known = AGENT_NAMES.join(", ");
  throw new UsageError(
    `${JSON.stringify(name)} is no agent: ${known}, or one of worker.toml${didYouMean(name, AGENT_NAMES)}`,
    NAME,
  );
}

/** Without --node: one for each machine. */
function nodeOf(agent: Agent | null): string {
  const name = agent === null ? hostname() : `${agent.name}-${hostname()}`;
  return name.replaceAll(/[^A-Za-z0-9._:-]/g, "-").slice(0, NODE_ID_MAX_CHARS);
}

/** Where the tasks of an agent have their directories without --workdir. */
function agentDir({ XDG_STATE_HOME: given = "" }: Environment): string {
  return join(isAbsolute(given) ? given : join(homedir(), ".local", "state"), "luxhub-agents");
}

/** @throws {UsageError} when there is no repository, or no such base or remote */
async function repositoryOf(values: Values, env: Environment): Promise<Repository | null> {
  const dir = values.text("repo");
  const [base = null, fetched = null, pushed = null] = ["base", "fetch", "push"].map((flag) =>
    values.text(flag),
  );
  if (dir === undefined) {
    if ((base ?? fetched ?? pushed) === null) return null;
    throw new UsageError("--base, --fetch and --push need --repo DIR, the repository of the tasks", NAME);
  }
  if (Bun.which("git", { PATH: env["PATH"] ?? "" }) === null) throw new UsageError("--repo needs git", NAME);
  try {
    return await Repository.open({ dir: resolve(dir), base, fetch: fetched, push: pushed, env });
  } catch (error) {
    throw error instanceof GitError ? new UsageError(`--repo ${dir}: ${error.message}`, NAME) : error;
  }
}

/** Below --workdir, which several workers may share. */
function makeWorkDir(tasksDir: string, nodeId: string): string {
  const dir = join(resolve(tasksDir), `${NODE_DIR}${nodeId}`);
  if (!/^[A-Za-z0-9._:-]+$/.test(nodeId))
    throw new UsageError(`${JSON.stringify(nodeId)} is not a valid node id`, NAME);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return realpathSync(dir);
}

/** Saves what killed workers have left of the repository: that of this node, and of others that have not come back. */
async function recover(
  repository: Repository,
  workDir: string,
  signal: AbortSignal,
  transfer: Transfer,
): Promise<void> {
  const tasksDir = dirname(workDir);
  for (const name of readdirSync(tasksDir).filter((entry) => entry.startsWith(NODE_DIR))) {
    const dir = join(tasksDir, name);
    const claims: Claim[] = [];
    const of = { ...transfer, nodeId: name.slice(NODE_DIR.length) };
    const claim = async (): Promise<boolean> => {
      if (dir === workDir) return true;
      if (await isOnline(of, signal)) return false; // it may be about to start again
      const claimed = claimDir(dir);
      if (typeof claimed === "string") return false;
      claims.push(claimed);
      return true;
    };
    try {
      await repository.recover(dir, (left) => sendLeft(left, repository, signal, of), claim);
    } finally {
      for (const claimed of claims) claimed.release();
    }
  }
  if (await repository.isDirty())
    transfer.log.warn("the checkout has changes that are not committed: no task sees them");
}

async function isOnline({ hub, nodeId }: Transfer, signal: AbortSignal): Promise<boolean> {
  try {
    const { node } = await hub.nodes.get({ node_id: nodeId }, { signal, retry: FOREVER });
    return node.status === "online";
  } catch (error) {
    if (error instanceof LuxHubError && error.code === "node_not_found") return false;
    throw error;
  }
}

function msOf(values: Values, flag: string): number | null {
  const seconds = values.seconds(flag);
  return seconds === undefined ? null : seconds * 1_000;
}

/** The first signal stops the worker in order; a second one ends the commands and gives their tasks back. */
class Signals {
  readonly stop = new AbortController();
  readonly release = new AbortController();
  isSent = false;
  readonly #clock = systemClock();
  readonly #onSignal = (): void => this.#take();
  #firstAt = Number.POSITIVE_INFINITY;

  constructor() {
    for (const signal of endingSignals()) process.on(signal, this.#onSignal);
    onStarterExit(this.#onSignal);
  }

  ignore(): void {
    for (const signal of endingSignals()) process.off(signal, this.#onSignal);
  }

  #take(): void {
    this.isSent = true;
    if (this.#clock.steady() - this.#firstAt > SECOND_SIGNAL_MS) this.release.abort();
    this.#firstAt = Math.min(this.#firstAt, this.#clock.steady());
    this.stop.abort();
  }
}

/** Logs once that the hub does not answer, and once that it answers again. */
function connectionLog(log: Log): Pick<ConstructorParameters<typeof LuxHub>[0], "onRecovery" | "onRetry"> {
  let isAway = false;
  return {
    onRetry: (fault) => {
      if (!isAway) log.warn("the hub does not answer; waiting for it", { cause: textOf(fault) });
      isAway = true;
    },
    onRecovery: () => {
      if (isAway) log.info("the hub answers again");
      isAway = false;
    },
  };
}

/** Logs to which hub the calls go when it is another one. */
function hubsLog({ urls, onHubs }: Remote, log: Log): (known: readonly string[]) => void {
  let [inUse] = urls.split(",");
  return (known) => {
    if (known[0] !== inUse) log.info("another hub accepts the calls", { url: known[0] });
    inUse = known[0];
    onHubs?.(known);
  };
}

/** This worker takes over its tasks, from a worker on another machine or from a crashed one. */
async function warnOfOther(hub: LuxHub, nodeId: string, signal: AbortSignal, log: Log): Promise<void> {
  try {
    const { node } = await hub.nodes.get({ node_id: nodeId }, { signal, retry: { forMs: 0 } });
    if (node.status === "online")
      log.warn(`${nodeId} is online already: taking over its tasks from a worker that crashed or still runs`);
  } catch (error) {
    // The node is not registered yet, or the hub cannot be reached.
    if (!(error instanceof LuxHubError || error instanceof HubUnreachable || signal.aborted)) throw error;
  }
}

/** Without --timeout that of the task's attempt. */
function timeoutOf({ max_run_s }: Task, { timeoutMs }: TaskOptions): number | null {
  if (timeoutMs !== null) return timeoutMs;
  const limitMs = max_run_s === null ? null : max_run_s * 1_000;
  return limitMs !== null && limitMs <= TIMER_MAX_MS ? limitMs : null;
}

/** Undefined: nothing was said. Words are no resources. */
function resourcesOf(values: Values): Readonly<Record<string, number>> | undefined {
  const listed = values.requirements("resources");
  if (listed !== null && listed.words.length > 0)
    throw new UsageError("--resources needs a list such as gpu=2,vram_gib=24", "worker");
  const detected = values.has("detect") ? detectResources() : {};
  const resources = { ...detected, ...listed?.amounts };
  return Object.keys(resources).length === 0 ? undefined : resources;
}

/** Without capabilities the worker takes every type. */
function takesTypes(capabilities: string | undefined, untyped: boolean): string {
  if (capabilities === undefined) return "takes tasks of every type (--capabilities limits them)";
  return `takes tasks of the types ${capabilities}${untyped ? ", and tasks without a type" : ""}`;
}

function logEvent(event: WorkerEvent, log: Log): void {
  switch (event.kind) {
    case "registered":
      return log.info(`${event.nodeId} registered, waits for tasks`);
    case "left":
      return log.info(`${event.nodeId} left`);
    case "fault":
      return log.warn("a call of the worker failed", { cause: textOf(event.error) });
    case "resting":
      return log.warn(
        `the agent does not work: gives its task back, and takes no more for ${event.forMs / 60_000} min`,
        { cause: textOf(event.error) },
      );
  }
  const { task_id: task, title } = event.task;
  const shown = JSON.stringify(title);
  switch (event.kind) {
    case "started":
      return log.info(`started ${shown}`, { task, epoch: event.epoch });
    case "completed":
      return log.info(`completed ${shown}`, { task, ...(event.luxPaid > 0 ? { lux: event.luxPaid } : {}) });
    case "failed":
      return log.warn(`failed ${shown}`, { task, error: textOf(event.error) });
    case "released":
      return log.info(`gave back ${shown}`, { task });
    case "parked":
      return log.info(`parked ${shown} until its question is answered`, { task });
    case "lost":
      return log.warn(`lost ${shown}`, { task, cause: event.error.code });
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
