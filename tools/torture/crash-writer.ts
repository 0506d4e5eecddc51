/**
 * A writer of the tests that kill hubs, with a ledger of every 2xx. It writes until a call is not answered because the hub
 * was killed. It repeats that call on the next hub if the call is idempotent.
 */
import { RESOURCE_UNITS } from "../../src/domain/limits.ts";
import { type Answer, type Hub, listOf } from "../../test/e2e/program.ts";

type Row = Readonly<Record<string, unknown>>;

export class Ledger {
  acknowledged = 0;
  readonly nodes = new Set<string>();
  readonly signedIn = new Set<string>();
  /** Reward in millionths, by task. */
  readonly tasks = new Map<string, number>();
  /** Who won each hand-out, by task and epoch; two are one too many. */
  readonly winners = new Map<string, Set<string>>();
  /** The highest epoch that anyone was told, by task. */
  readonly epochs = new Map<string, number>();
  /** How many pieces of output were accepted, by task and epoch. */
  readonly outputs = new Map<string, number>();
  /** Who holds what, until it asks for something that may end it; by task. */
  readonly holds = new Map<string, { readonly nodeId: string; readonly epoch: number }>();
  /** Ends of a hold other than completion, by path. */
  readonly ended = new Map<string, number>();
  /** Attempts that a node said to have failed: asked, and told so; by node and task. */
  readonly failures = new Map<string, { asked: number; told: number }>();
  readonly completed = new Map<string, { readonly nodeId: string; readonly lesson: string }>();
  /** Tasks whose result waits for a review, as far as the writers know. */
  readonly toReview: string[] = [];
  /** Verdicts that were accepted, by task. */
  readonly verdicts = new Map<string, { pass: number; reject: number }>();
  quorums = 0;
  readonly sent = new Map<string, { readonly toNode: string; readonly requireAck: boolean }>();
  /** How often each message was handed out, to anyone. */
  readonly received = new Map<string, number>();
  readonly acked = new Set<string>();
  /** The last version of each note that its writer was told, and its text. */
  readonly notes = new Map<string, { readonly version: number; readonly text: string }>();
  /** Fencing numbers of leases, with what they are for: one is never used again. */
  readonly fencing = new Map<number, string>();
  /** The answers to the questions that were asked; null: that to an open one. By question_id. */
  readonly questions = new Map<string, string | null>();
  /** What may be stored of each limit and pause, in words: more than one while a call was cut off. */
  readonly rules = new Map<string, Set<string>>();
  /** How many thousandths of a GPU the tasks with requirements need, by task. */
  readonly gpus = new Map<string, number>();
  readonly files = new Map<string, string>();
  /** Tasks that task/next handed out, alone or in a batch; calls of it that were hung up; batches. */
  handedOut = 0;
  hungUp = 0;
  batches = 0;
  /** Receives of one message each that were cut off, until they are repeated: each may have taken one along; by node. */
  readonly cutReceives = new Map<string, number>();
  /** As complete returned them, by task. */
  readonly receipts = new Map<string, unknown>();
  readonly faults: string[] = [];

  takes(messages: readonly Row[]): void {
    for (const { id } of messages) {
      this.received.set(String(id), (this.received.get(String(id)) ?? 0) + 1);
    }
  }
}

/** A write, and what it means that it was answered 200. */
type Call = {
  readonly path: string;
  readonly body: object;
  /** Makes it safe to repeat; without one, some calls are safe by themselves. */
  readonly key: string | null;
  /** Whether this one is safe by itself, though others of its path are not. */
  readonly isSafe?: boolean;
  readonly isAdmin?: boolean;
  readonly told: (body: Row) => void;
  readonly refusals?: readonly number[];
};

type Got = { readonly taskId: string; readonly epoch: number };

/** What the writers of one cycle share. */
export type Crowd = {
  readonly hub: Pick<Hub, "post" | "call">;
  readonly ledger: Ledger;
  readonly random: () => number;
  readonly nodes: readonly string[];
  /** Tasks that somebody can claim, as far as they know; those that wait for something come first. */
  readonly open: string[];
  /** With it the writers also set and remove limits and pauses; null: they do not. */
  readonly adminKey: string | null;
};

/** The task timed out, has expired or failed with what it depends on, before its holder asked. */
const LATE = [403, 409];
const EXPIRES_AFTER_MS = 1_500;
export const GRAPH_TAG = "graph";
export const LIMIT_KEY = "gpus";
/** Until the deadline of a review decides; and so long that it does not. */
const REVIEW_SOON_S = 1;
const REVIEW_LATER_S = 86_400;
/** Longer than the test. */
const UNIQUE_FOR_S = 86_400;
/** How long a task/next waits, and when at the latest its caller hangs up. */
const WAIT_S = 0.1;
const HANG_UP_MOST_MS = 30;

/** The hub did not answer: it is gone. */
class Gone extends Error {}

/** Paths whose repetition does nothing more, with an Idempotency-Key or without. */
export const SAFE_BY_THEMSELVES: ReadonlySet<string> = new Set([
  "/task/claim",
  "/task/complete",
  "/task/output",
  "/task/ask",
  "/task/answer",
  "/message/ack",
  "/signin",
  "/node/leave",
  "/node/heartbeat",
  "/note/put",
  "/lease/acquire",
  "/limit/set",
  "/hub/pause",
]);

export class Writer {
  readonly #crowd: Crowd;
  readonly #nodeId: string;
  readonly #auth: Readonly<Record<string, string>>;
  /** The call that was not answered. */
  #cut: Call | null = null;
  readonly #first: number;
  #step: number;

  /**
   * What a round does depends on its number: with different first ones, a crowd does everything at once.
   * @param secret of a key that is bound to its node; null: it writes with the hub's secret
   */
  constructor(crowd: Crowd, nodeId: string, first = 0, secret: string | null = null) {
    this.#crowd = crowd;
    this.#auth = secret === null ? {} : { "X-Matrix-Secret": secret };
    this.#nodeId = nodeId;
    this.#first = first;
    this.#step = first;
  }

  get rounds(): number {
    return Math.max(0, this.#step - this.#first - 1);
  }

  /** Resolves when the hub is gone. The next call continues with the next round. */
  async work(): Promise<void> {
    try {
      for (;;) await this.#round(this.#step++);
    } catch (error) {
      if (!(error instanceof Gone)) throw error;
    }
  }

  /** Asks the next hub again what the last one did not answer, if that is safe; once more than needed, to be sure. */
  async repeat(hub: Hub): Promise<void> {
    if (this.#cut === null) return;
    const { path, key, isSafe = false } = this.#cut;
    if (key === null && !isSafe && !SAFE_BY_THEMSELVES.has(path)) return;
    const first = await this.#ask(hub, this.#cut);
    this.#settle(this.#cut, first);
    const again = await this.#ask(hub, this.#cut);
    // The lease of the task may have ended meanwhile.
    if (path === "/task/output" && again.status === 409 && again.body["error"] !== "wrong_offset") return;
    if ((path === "/task/ask" || path === "/lease/acquire") && again.status === 409) return;
    // The deadline of its review may have opened the task again.
    if (path === "/task/complete" && first.body["lux_held"] !== undefined) return;
    // What was refused may be possible by now.
    if (again.status !== first.status && (first.status === 200 || key !== null))
      this.#blame(this.#cut, again);
    // Without a task nothing is stored.
    const handedOut = leaseOf(first.body);
    if (path === "/task/next" && handedOut !== "" && leaseOf(again.body) !== handedOut)
      this.#blame(this.#cut, again);
    if (path === "/node/leave") await this.#ask(hub, this.#heartbeat());
  }

  async #round(step: number): Promise<void> {
    // Every other round goes with an Idempotency-Key: what is cut there is repeated.
    const key = (what: string): string | null => (step % 2 === 0 ? null : `${this.#nodeId}-${what}-${step}`);
    if (step % 8 === 0) await this.#signIn();
    await this.#create(step, key("create"));
    if (step % 4 === 2) await this.#createChecked(step);
    await this.#review(step);
    if (step % 3 === 0) await this.#batchAndEnd(step, key("batch"));
    else if (step % 3 === 1) await this.#nextAndEnd(step, key("next"));
    else await this.#claimAndEnd(step);
    if (step % 16 === 15) await this.#leaveAndReturn();
    if (step % 2 === 0) await this.#note(step);
    await this.#rule(step);
    if (step % 4 === 1) await this.#lease(`${this.#nodeId}/step-${step}`, null);
    await this.#send(step, key("send"));
    await this.#receive(step, key("receive"));
    if (step % 4 === 1) await this.#upload(step);
  }

  #signIn(): Promise<void> {
    const told = (): void => void this.#crowd.ledger.signedIn.add(this.#nodeId);
    return this.#call({ path: "/signin", body: { node_id: this.#nodeId }, key: null, told });
  }

  #create(step: number, key: string | null): Promise<void> {
    const { ledger, open, random } = this.#crowd;
    const rewardMicro = Math.floor(random() * 5_000_000);
    const known = [...ledger.tasks.keys()];
    const isUnique = key === null && step % 3 === 1;
    const scheduling = [
      {},
      { timeout_s: 1 },
      { depends_on: known.slice(-1) },
      { delay_s: 0.2 },
      { expires_at: new Date(Date.now() + EXPIRES_AFTER_MS).toISOString() },
      { max_attempts: 2 },
    ][step % 6];
    const gpu = step % 6 === 5 ? 1 + (step % 7) : 0;
    const body = {
      title: `${this.#nodeId} ${step}`,
      description: "Survive",
      lux_reward: rewardMicro / 1_000_000,
      backoff_s: 0,
      ...scheduling,
      ...(gpu > 0 && {
        requires: { resources: { gpu: gpu / RESOURCE_UNITS } },
        limit_key: LIMIT_KEY,
      }),
      // Without an Idempotency-Key a repeat gets the task that has the unique key.
      ...(isUnique && { unique_key: `${this.#nodeId} ${step}`, unique_for_s: UNIQUE_FOR_S }),
    };
    const told = ({ task_id, task }: Row): void => {
      ledger.tasks.set(String(task_id), rewardMicro);
      if (gpu > 0) ledger.gpus.set(String(task_id), gpu);
      if (Object(task).ready === true) open.push(String(task_id));
      else open.unshift(String(task_id));
    };
    // A repeat may come after expires_at.
    const refusals = step % 6 === 4 ? [400] : [];
    return this.#call({ path: "/task/create", body, key, told, refusals, isSafe: isUnique });
  }

  /** A task that is checked before it is paid: by a review, which its deadline may decide, or by a quorum. */
  #createChecked(step: number): Promise<void> {
    const { ledger, open, random } = this.#crowd;
    const rewardMicro = 1 + Math.floor(random() * 5_000_000);
    const isReviewed = step % 8 === 2;
    const isSoon = Math.floor(step / 8) % 2 === 0;
    const checked = isReviewed
      ? {
          review: "creator",
          review_within_s: isSoon ? REVIEW_SOON_S : REVIEW_LATER_S,
          on_review_timeout: Math.floor(step / 16) % 2 === 0 ? "pay" : "reject",
        }
      : { quorum: { results: 2, of: 4 } };
    const body = {
      title: `${this.#nodeId} ${step} checked`,
      description: "Survive",
      lux_reward: rewardMicro / 1_000_000,
      backoff_s: 0,
      ...checked,
    };
    const told = ({ task_id }: Row): void => {
      ledger.tasks.set(String(task_id), rewardMicro);
      if (isReviewed) open.push(String(task_id));
      else ledger.quorums++;
    };
    return this.#call({ path: "/task/create", body, key: `${this.#nodeId}-checked-${step}`, told });
  }

  /** Passes or rejects a result. Its worker, if it is this one, and one that comes too late are refused. */
  async #review(step: number): Promise<void> {
    const { ledger, open, random } = this.#crowd;
    const taskId = ledger.toReview.shift();
    if (taskId === undefined) return;
    const verdict = random() < 0.4 ? "reject" : "pass";
    await this.#call({
      path: "/task/review",
      body: { task_id: taskId, verdict },
      key: `${this.#nodeId}-review-${step}`,
      refusals: LATE,
      told: () => {
        const verdicts = ledger.verdicts.get(taskId) ?? { pass: 0, reject: 0 };
        ledger.verdicts.set(taskId, verdicts);
        verdicts[verdict]++;
        if (verdict === "reject") open.push(taskId);
      },
    });
  }

  /** One of the newest tasks, so that several writers want the same; sometimes the oldest, which had to wait. */
  async #claimAndEnd(step: number): Promise<void> {
    const { open, random } = this.#crowd;
    const nodeId = this.#nodeId;
    const newest = step % 4 === 3 ? undefined : open.at(-1 - Math.floor(random() * 3));
    const taskId = newest ?? open[0];
    if (taskId === undefined) return;
    const forget = (): void => {
      const at = open.indexOf(taskId);
      if (at !== -1) open.splice(at, 1);
    };
    let epoch = 0;
    await this.#call({
      path: "/task/claim",
      body: { task_id: taskId, node_id: nodeId },
      key: null,
      refusals: [409],
      told: ({ lease }) => {
        epoch = Number(Object(lease).epoch);
        this.#won(taskId, epoch);
        forget();
      },
    });
    if (epoch === 0) return forget(); // another has it, or it is not ready
    await this.#end(taskId, epoch, step);
  }

  /** Asks for a task, blocking or not; every fourth time hangs up meanwhile, and resumes what it may have got. */
  async #nextAndEnd(step: number, key: string | null): Promise<void> {
    const { ledger, random } = this.#crowd;
    const body = { node_id: this.#nodeId, wait: step % 2 === 0 ? WAIT_S : 0, resume: step % 5 === 0 };
    let got: Got | null = null;
    const told = (answer: Row): void => void (got = this.#handedOut(answer));
    if (step % 4 !== 2) await this.#call({ path: "/task/next", body, key, told });
    else if (await this.#hangsUp(body, random() * HANG_UP_MOST_MS, told)) {
      ledger.hungUp++;
      await this.#call({ path: "/task/next", body: { ...body, wait: 0, resume: true }, key: null, told });
    }
    await this.#endIfAny(got, step);
  }

  /** False: it was answered first. */
  async #hangsUp(body: object, afterMs: number, told: Call["told"]): Promise<boolean> {
    const call: Call = { path: "/task/next", body, key: null, told };
    const hangUp = new AbortController();
    const timer = setTimeout(() => hangUp.abort(), afterMs);
    this.#cut = call;
    try {
      this.#settle(
        call,
        await this.#crowd.hub.post(call.path, body, { signal: hangUp.signal, headers: this.#auth }),
      );
    } catch (cause) {
      if (!hangUp.signal.aborted) gone(cause);
    } finally {
      clearTimeout(timer);
    }
    this.#cut = null;
    return hangUp.signal.aborted;
  }

  /**
   * Two tasks of a group, both there or none (crash-checks.ts), and perhaps one of them handed out. Every other time the
   * second depends on the first.
   */
  async #batchAndEnd(step: number, key: string | null): Promise<void> {
    const { ledger, open, random } = this.#crowd;
    const rewards = [0, 1].map(() => Math.floor(random() * 5_000_000));
    const creates = rewards.map((micro, i) => ({
      path: "task/create",
      ...(i === 0 && { ref: "a" }),
      body: {
        title: `${this.#nodeId} ${step} pair ${"ab"[i]}`,
        description: "Survive",
        lux_reward: micro / 1_000_000,
        group: `${this.#nodeId}-${step}`,
        ...(i === 1 && step % 2 === 0 && { tags: [GRAPH_TAG], depends_on: [{ $ref: "a" }] }),
      },
    }));
    const next = { path: "task/next", body: { node_id: this.#nodeId } };
    let got: Got | null = null;
    await this.#call({
      path: "/batch",
      body: { requests: [...creates, next] },
      key,
      told: ({ answers }) => {
        ledger.batches++;
        const told = listOf(answers);
        if (told.length !== 3 || told.some(({ status }) => status !== 200))
          ledger.faults.push(`/batch: ${JSON.stringify(answers)}`);
        for (const [i, micro] of rewards.entries()) {
          const taskId = String(Object(told[i]?.["body"]).task_id);
          ledger.tasks.set(taskId, micro);
          open.push(taskId);
        }
        got = this.#handedOut(Object(told[2]?.["body"]));
      },
    });
    await this.#endIfAny(got, step);
  }

  async #endIfAny(got: Got | null, step: number): Promise<void> {
    if (got) await this.#end(got.taskId, got.epoch, step);
  }

  #handedOut({ task, lease }: Row): Got | null {
    const { ledger, open } = this.#crowd;
    if (task === null) return null;
    const got = { taskId: String(Object(task).task_id), epoch: Number(Object(lease).epoch) };
    ledger.handedOut++;
    this.#won(got.taskId, got.epoch);
    const at = open.indexOf(got.taskId);
    if (at !== -1) open.splice(at, 1);
    return got;
  }

  #won(taskId: string, epoch: number): void {
    const { ledger } = this.#crowd;
    const handOut = `${taskId} ${epoch}`;
    ledger.winners.set(handOut, (ledger.winners.get(handOut) ?? new Set()).add(this.#nodeId));
    ledger.epochs.set(taskId, Math.max(epoch, ledger.epochs.get(taskId) ?? 0));
    ledger.holds.set(taskId, { nodeId: this.#nodeId, epoch });
  }

  /** Some stay assigned; the others are completed, or come back in every way that there is. */
  async #end(taskId: string, epoch: number, step: number): Promise<void> {
    const { ledger, open } = this.#crowd;
    if (step % 3 === 0) await this.#lease(`task/${taskId}/**`, { taskId, epoch });
    const asked = { task_id: taskId, node_id: this.#nodeId, epoch };
    const again = (): void => void open.push(taskId);
    // Not before a cancel and its retry, which few rounds get to.
    const pieces = step % 2 === 1 ? 3 : Number(step % 8 === 2);
    for (let piece = 0; piece < pieces; piece++) await this.#say(taskId, epoch, piece);
    if (step % 5 === 1 && (await this.#parks(taskId, epoch, step))) return;
    switch (step % 8) {
      case 0:
        return;
      case 2:
        return this.#endBy("/task/release", asked, step, again);
      case 4: {
        const failures = ledger.failures.get(`${this.#nodeId} ${taskId}`) ?? { asked: 0, told: 0 };
        ledger.failures.set(`${this.#nodeId} ${taskId}`, failures);
        failures.asked++;
        return this.#endBy("/task/fail", { ...asked, error: "A crash" }, step, ({ status }) => {
          failures.told++;
          if (status !== "failed") again();
        });
      }
      case 6: {
        const { task_id, node_id } = asked;
        let isCancelled = false;
        await this.#endBy("/task/cancel", { task_id, node_id }, step, () => void (isCancelled = true));
        if (isCancelled && step % 16 === 6) await this.#endBy("/task/retry", { task_id }, step, again);
        return;
      }
      case 3:
        await this.#call({
          path: "/task/extend",
          body: { ...asked, note: `step ${step}` },
          key: `${this.#nodeId}-extend-${step}`,
          refusals: LATE,
          told: () => {},
        });
        break;
    }
    const lesson = `lesson ${this.#nodeId} ${step}`;
    // What the results of a quorum must agree on; some do not.
    const output = step % 5 === 2 ? step : "the same";
    const result = { problem: "A crash", improvement: "A log", lesson, output };
    ledger.holds.delete(taskId);
    await this.#call({
      path: "/task/complete",
      body: { ...asked, result },
      key: null,
      refusals: LATE,
      told: ({ receipt, lux_held }) => {
        if (lux_held !== undefined) return void ledger.toReview.push(taskId); // it may be rejected
        ledger.completed.set(taskId, { nodeId: this.#nodeId, lesson });
        ledger.receipts.set(taskId, receipt);
      },
    });
  }

  /** Asks about the task, and answers. Returns whether the question has given the task back. */
  async #parks(taskId: string, epoch: number, step: number): Promise<boolean> {
    const { ledger, open } = this.#crowd;
    const park = step % 2 === 0;
    const asked = {
      task_id: taskId,
      node_id: this.#nodeId,
      epoch,
      question: `${this.#nodeId} ${step}?`,
      park,
    };
    let questionId = "";
    if (park) ledger.holds.delete(taskId);
    await this.#call({
      path: "/task/ask",
      body: asked,
      key: null,
      refusals: LATE,
      told: ({ question }) => {
        questionId = String(Object(question).question_id);
        ledger.questions.set(questionId, null);
      },
    });
    if (questionId === "") return park;
    const answer = `answer ${step}`;
    await this.#call({
      path: "/task/answer",
      body: { task_id: taskId, question_id: questionId, answer },
      key: null,
      refusals: LATE,
      told: () => void ledger.questions.set(questionId, answer),
    });
    if (park) open.push(taskId);
    return park;
  }

  /** A piece of output, at the end of those before it. */
  async #say(taskId: string, epoch: number, piece: number): Promise<void> {
    const { outputs } = this.#crowd.ledger;
    const attempt = `${taskId} ${epoch}`;
    if ((outputs.get(attempt) ?? 0) !== piece) return; // the one before came too late
    const offset = Buffer.byteLength(outputOf(attempt, piece));
    const data = pieceOf(attempt, piece);
    await this.#call({
      path: "/task/output",
      body: { task_id: taskId, node_id: this.#nodeId, epoch, offset, data },
      key: null,
      refusals: LATE,
      told: () => void outputs.set(attempt, piece + 1),
    });
  }

  /** Always with an Idempotency-Key: twice it would be something else. */
  #endBy(
    path: string,
    body: Row & { readonly task_id: string },
    step: number,
    told: Call["told"],
  ): Promise<void> {
    const { ledger } = this.#crowd;
    ledger.holds.delete(body.task_id);
    const count = (answer: Row): void => {
      ledger.ended.set(path, (ledger.ended.get(path) ?? 0) + 1);
      told(answer);
    };
    return this.#call({ path, body, key: `${this.#nodeId}${path}-${step}`, refusals: LATE, told: count });
  }

  /** What it holds is open again; nobody looks for it there. */
  async #leaveAndReturn(): Promise<void> {
    const { holds, ended } = this.#crowd.ledger;
    const path = "/node/leave";
    for (const [taskId, { nodeId }] of holds) if (nodeId === this.#nodeId) holds.delete(taskId);
    const told = (): void => void ended.set(path, (ended.get(path) ?? 0) + 1);
    await this.#call({ path, body: { node_id: this.#nodeId }, key: null, told });
    await this.#call(this.#heartbeat());
  }

  #heartbeat(): Call {
    return { path: "/node/heartbeat", body: { node_id: this.#nodeId }, key: null, told: () => {} };
  }

  /** Compare-and-set on a note of its own: what it was told is there, and what was cut is there or not. */
  #note(step: number): Promise<void> {
    const { notes } = this.#crowd.ledger;
    const key = `note of ${this.#nodeId}`;
    const text = `step ${step}`;
    const body = { key, text, node_id: this.#nodeId, if_version: notes.get(key)?.version ?? 0 };
    const told = ({ note }: Row): void =>
      void notes.set(key, { version: Number(Object(note).version), text });
    return this.#call({ path: "/note/put", body, key: null, told });
  }

  /** Sets and removes a limit and a pause of its own place in the crowd, of which no task is. */
  async #rule(step: number): Promise<void> {
    const { adminKey, ledger } = this.#crowd;
    if (adminKey === null) return;
    const key = `rule-${this.#nodeId.split("-").at(-1)}`;
    const [running, reason] = [1 + (step % 1_000), `step ${step}`];
    const change = (path: string, body: object, of: string, then: string): Promise<void> => {
      const name = `${of} ${key}`;
      const before = ledger.rules.get(name) ?? new Set([""]);
      // What is there may be gone already, if the call that removed it was cut off.
      const refusals = then === "" && before.has("") ? [404] : [];
      ledger.rules.set(name, new Set([...before, then]));
      const told = (): void => void ledger.rules.set(name, new Set([then]));
      return this.#call({ path, body, key: null, told, refusals, isAdmin: true });
    };
    await change("/limit/set", { key, running }, "limit", String(running));
    await change("/hub/pause", { limit_key: key, reason }, "pause", reason);
    if (step % 3 !== 0) return;
    await change("/limit/delete", { key }, "limit", "");
    await change("/hub/resume", { limit_key: key }, "pause", "");
  }

  /** Of a name that nobody else has; with the task it ends. */
  #lease(name: string, held: Got | null): Promise<void> {
    const { ledger } = this.#crowd;
    const task = held === null ? {} : { task_id: held.taskId, epoch: held.epoch };
    const body = { name, node_id: this.#nodeId, ttl_s: 30, ...task };
    const told = ({ lease }: Row): void => {
      const fencing = Number(Object(lease).fencing);
      const whose = `${this.#nodeId} ${name} ${held?.taskId ?? ""}`;
      const other = ledger.fencing.get(fencing);
      if (other !== undefined && other !== whose)
        ledger.faults.push(`/lease/acquire: ${fencing} is of ${other} and of ${whose}`);
      ledger.fencing.set(fencing, whose);
    };
    // A node may have as many leases as its limit, and may have lost the task.
    return this.#call({ path: "/lease/acquire", body, key: null, told, refusals: LATE });
  }

  #send(step: number, key: string | null): Promise<void> {
    const { ledger, nodes, random } = this.#crowd;
    const toNode = nodes[Math.floor(random() * nodes.length)] ?? this.#nodeId;
    const requireAck = step % 3 === 0;
    const content = `${this.#nodeId} ${step}`;
    const body = { from_node: this.#nodeId, to_node: toNode, content, require_ack: requireAck };
    const told = ({ message_id }: Row): void =>
      void ledger.sent.set(String(message_id), { toNode, requireAck });
    return this.#call({ path: "/message/send", body, key, told });
  }

  async #receive(step: number, key: string | null): Promise<void> {
    const { ledger } = this.#crowd;
    const nodeId = this.#nodeId;
    const cuts = (more: number): void => {
      ledger.cutReceives.set(nodeId, (ledger.cutReceives.get(nodeId) ?? 0) + more);
    };
    let taken: readonly Row[] = [];
    cuts(1);
    await this.#call({
      path: "/message/receive",
      body: { node_id: nodeId, count: 1 },
      key,
      told: ({ messages }) => {
        cuts(-1);
        taken = listOf(messages);
        ledger.takes(taken);
      },
    });
    for (const { id, require_ack } of taken) {
      const messageId = String(id);
      if (step % 5 === 0 || !(require_ack === true || ledger.sent.get(messageId)?.requireAck)) continue;
      const body = { node_id: nodeId, message_id: messageId };
      await this.#call({ path: "/message/ack", body, key: null, told: () => ledger.acked.add(messageId) });
    }
  }

  async #upload(step: number): Promise<void> {
    const { hub, ledger, random } = this.#crowd;
    const bytes = Buffer.alloc(1 + Math.floor(random() * 40_000), `${this.#nodeId} ${step} `);
    const body = new FormData();
    body.append("file", new Blob([bytes]), `${this.#nodeId} ${step}`);
    const answer = await hub.call("POST", "/file/upload", { body, headers: this.#auth }).catch(gone);
    const sha256 = Bun.SHA256.hash(bytes, "hex");
    if (answer.status !== 200 || answer.body["sha256"] !== sha256) {
      ledger.faults.push(`/file/upload: ${answer.status} ${JSON.stringify(answer.body)}`);
      return;
    }
    ledger.acknowledged++;
    ledger.files.set(String(answer.body["file_id"]), sha256);
  }

  async #call(call: Call): Promise<void> {
    this.#cut = call;
    const answer = await this.#ask(this.#crowd.hub, call);
    this.#cut = null;
    this.#settle(call, answer);
  }

  #ask(hub: Crowd["hub"], { path, body, key, isAdmin = false }: Call): Promise<Answer> {
    const { adminKey } = this.#crowd;
    const headers = {
      ...this.#auth,
      ...(key === null ? {} : { "Idempotency-Key": key }),
      ...(isAdmin && adminKey !== null && { "X-Admin-Key": adminKey }),
    };
    return hub.post(path, body, { headers }).catch(gone);
  }

  #settle(call: Call, answer: Answer): void {
    if (answer.status === 200) {
      this.#crowd.ledger.acknowledged++;
      call.told(answer.body);
    } else if (!call.refusals?.includes(answer.status)) this.#blame(call, answer);
  }

  #blame({ path, body }: Call, answer: Answer): void {
    const { status } = answer;
    this.#crowd.ledger.faults.push(
      `${path} ${JSON.stringify(body)}: ${status} ${JSON.stringify(answer.body)}`,
    );
  }
}

/** Of different lengths, so that some end a block of the hub. */
function pieceOf(attempt: string, piece: number): string {
  return `${attempt} ${piece} ${"✓".repeat(piece * 3_000)}\n`;
}

/** The first pieces of an attempt. */
export function outputOf(attempt: string, pieces: number): string {
  return Array.from({ length: pieces }, (_, i) => pieceOf(attempt, i)).join("");
}

/** Which task task/next handed out, and under which epoch; "" for none. */
function leaseOf({ task, lease }: Row): string {
  return task ? `${Object(task).task_id} ${Object(lease).epoch}` : "";
}

function gone(cause: unknown): never {
  throw new Gone("no answer", { cause });
}
