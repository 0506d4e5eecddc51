/**
 * A writer of the tests that kill hubs, with a ledger of every 2xx. It writes until a call is not answered because the hub
 * was killed. It repeats that call on the next hub if the call is idempotent.
 */
import { type Answer, type Hub, listOf } from "../e2e/program.ts";

type Row = Readonly<Record<string, unknown>>;

/** What the writers were told, over all cycles. */
export class Ledger {
  /** Every 2xx to a write. */
  acknowledged = 0;
  readonly nodes = new Set<string>();
  readonly signedIn = new Set<string>();
  /** Reward in millionths, by task. */
  readonly tasks = new Map<string, number>();
  /** Who won each task; two are one too many. */
  readonly winners = new Map<string, Set<string>>();
  readonly completed = new Map<string, { readonly nodeId: string; readonly lesson: string }>();
  readonly sent = new Map<string, { readonly toNode: string; readonly requireAck: boolean }>();
  /** How often each message was handed out, to anyone. */
  readonly received = new Map<string, number>();
  readonly acked = new Set<string>();
  /** SHA-256 by file. */
  readonly files = new Map<string, string>();
  /** Receives of one message each that were cut off, until they are repeated: each may have taken one along; by node. */
  readonly cutReceives = new Map<string, number>();
  /** What was answered as it must not be, in words. */
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
  readonly told: (body: Row) => void;
  /** Other answers that are right. */
  readonly refusals?: readonly number[];
};

/** What the writers of one cycle share. */
export type Crowd = {
  readonly hub: Pick<Hub, "post" | "call">;
  readonly ledger: Ledger;
  readonly random: () => number;
  readonly nodes: readonly string[];
  /** Tasks that nobody has claimed yet, as far as they know. */
  readonly open: string[];
};

/** The hub did not answer: it is gone. */
class Gone extends Error {}

/** Paths whose repetition does nothing more, with an Idempotency-Key or without. */
export const SAFE_BY_THEMSELVES: ReadonlySet<string> = new Set([
  "/task/claim",
  "/task/complete",
  "/message/ack",
  "/signin",
]);

export class Writer {
  readonly #crowd: Crowd;
  readonly #nodeId: string;
  /** The call that was not answered. */
  #cut: Call | null = null;
  #step = 0;

  constructor(crowd: Crowd, nodeId: string) {
    this.#crowd = crowd;
    this.#nodeId = nodeId;
  }

  /** Rounds that it has done. */
  get rounds(): number {
    return Math.max(0, this.#step - 1);
  }

  /** Resolves when the hub is gone. Called again, it goes on with the next round. */
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
    const { path, key } = this.#cut;
    if (key === null && !SAFE_BY_THEMSELVES.has(path)) return;
    const first = await this.#ask(hub, this.#cut);
    this.#settle(this.#cut, first);
    const again = await this.#ask(hub, this.#cut);
    if (again.status !== first.status) this.#blame(this.#cut, again);
  }

  async #round(step: number): Promise<void> {
    // Every other round goes with an Idempotency-Key: what is cut there is repeated.
    const key = (what: string): string | null => (step % 2 === 0 ? null : `${this.#nodeId}-${what}-${step}`);
    if (step % 8 === 0) await this.#signIn();
    await this.#create(step, key("create"));
    await this.#claimAndComplete(step);
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
    const body = {
      title: `${this.#nodeId} ${step}`,
      description: "Survive",
      lux_reward: rewardMicro / 1_000_000,
    };
    const told = ({ task_id }: Row): void => {
      ledger.tasks.set(String(task_id), rewardMicro);
      open.push(String(task_id));
    };
    return this.#call({ path: "/task/create", body, key, told });
  }

  /** One of the newest tasks, so that several writers want the same. */
  async #claimAndComplete(step: number): Promise<void> {
    const { ledger, open, random } = this.#crowd;
    const nodeId = this.#nodeId;
    const taskId = open.at(-1 - Math.floor(random() * 3)) ?? open[0];
    if (taskId === undefined) return;
    let won = false;
    await this.#call({
      path: "/task/claim",
      body: { task_id: taskId, node_id: nodeId },
      key: null,
      refusals: [409],
      told: () => {
        won = true;
        ledger.winners.set(taskId, (ledger.winners.get(taskId) ?? new Set()).add(nodeId));
        const at = open.indexOf(taskId);
        if (at !== -1) open.splice(at, 1);
      },
    });
    if (!won || step % 4 === 0) return; // some stay assigned
    const lesson = `lesson ${nodeId} ${step}`;
    await this.#call({
      path: "/task/complete",
      body: {
        task_id: taskId,
        node_id: nodeId,
        result: { problem: "A crash", improvement: "A log", lesson },
      },
      key: null,
      told: () => ledger.completed.set(taskId, { nodeId, lesson }),
    });
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
    const answer = await hub.call("POST", "/file/upload", { body }).catch(gone);
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

  #ask(hub: Crowd["hub"], { path, body, key }: Call): Promise<Answer> {
    const headers = key === null ? {} : { "Idempotency-Key": key };
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

function gone(cause: unknown): never {
  throw new Gone("no answer", { cause });
}
