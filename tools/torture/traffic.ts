/**
 * Messages under load, while their transport is cut off or killed: senders and receivers that keep a ledger of answers
 * with 200, of received and of acknowledged messages.
 */
import { listOf, until } from "../../test/e2e/program.ts";

const SENDERS = 8;
const MAILBOXES = 6;

export type CutReport = {
  sent: number;
  received: number;
  acked: number;
  /** Answers other than 200. */
  readonly refused: string[];
  /** Answered with 200 and never received. */
  readonly lost: string[];
  /** Received again without saying so, or without having asked for an ACK. */
  readonly twice: string[];
  /** Received after a later one of the same sender. */
  readonly disordered: string[];
  /** What carried the answers, in the order of the first of each run of them, as one sender saw it. */
  readonly transports: string[];
  /** Where the events transport.changed led. */
  readonly changes: string[];
  /** From the moment Redis was there again until every hub said so and all that had been sent before was received. */
  caughtUpMs: number;
};

export type Sent = {
  readonly from: string;
  readonly to: string;
  readonly n: number;
  readonly requireAck: boolean;
};

type Fields = Readonly<Record<string, unknown>>;

/** One POST; `turn` counts the caller's own, so that several hubs can be asked by turns. */
export type Post = (
  path: string,
  body: object,
  turn: number,
) => Promise<{ readonly status: number; readonly body: Fields }>;

/** Senders and receivers over any number of hubs that are one, and what they saw. */
export class Traffic {
  readonly sent = new Map<string, Sent>();
  readonly got = new Set<string>();
  readonly boxes: readonly string[] = Array.from({ length: MAILBOXES }, (_, i) => `box-${i}`);
  readonly report: CutReport = {
    ...{ sent: 0, received: 0, acked: 0, caughtUpMs: Number.NaN },
    ...{ refused: [], lost: [], twice: [], disordered: [], transports: [], changes: [] },
  };
  readonly #post: Post;
  readonly #lastOf = new Map<string, number>();
  #sending = true;
  #receiving = true;

  constructor(post: Post) {
    this.#post = post;
  }

  async #ask(path: string, body: object, turn: number): Promise<Fields> {
    const answer = await this.#post(path, body, turn);
    if (answer.status === 200) return answer.body;
    this.report.refused.push(`${path} ${answer.status} ${JSON.stringify(answer.body)}`);
    return {};
  }

  /** Returns what stops it, once all that was sent has come or nothing more comes. */
  async start(): Promise<() => Promise<void>> {
    for (const box of this.boxes) await this.#ask("/node/register", { node_id: box, name: box }, 0);
    const senders = Array.from({ length: SENDERS }, (_, i) => this.#send(i));
    const receivers = this.boxes.map((box) => this.#receive(box));
    return async () => {
      this.#sending = false;
      await Promise.all(senders);
      await until(() => [...this.sent.keys()].every((id) => this.got.has(id))).catch(() => {});
      this.#receiving = false;
      await Promise.all(receivers);
      this.report.sent = this.sent.size;
      this.report.received = this.got.size;
      for (const [id, { from, n }] of this.sent) if (!this.got.has(id)) this.report.lost.push(`${from} ${n}`);
    };
  }

  /** One after the other: what comes out of a mailbox must keep the order. */
  async #send(sender: number): Promise<void> {
    const from = `sender-${sender}`;
    for (let n = 0; this.#sending; n++) {
      const to = `box-${(sender + n) % MAILBOXES}`;
      const message = { from_node: from, to_node: to, content: `${n} ${from}`, require_ack: n % 2 === 1 };
      const { message_id: id, transport } = await this.#ask("/message/send", message, n);
      if (id !== undefined) this.sent.set(String(id), { from, to, n, requireAck: message.require_ack });
      const { transports } = this.report;
      if (sender === 0 && transports.at(-1) !== transport) transports.push(String(transport));
    }
  }

  async #receive(box: string): Promise<void> {
    for (let turn = 0; this.#receiving; turn++) {
      const asked = { node_id: box, blocking: true, timeout: 0.2 };
      const { messages } = await this.#ask("/message/receive", asked, turn);
      for (const message of listOf(messages)) {
        this.#take(box, message);
        if (message["require_ack"] !== true) continue;
        await this.#ask("/message/ack", { node_id: box, message_id: message["id"] }, turn);
        this.report.acked++;
      }
    }
  }

  #take(box: string, message: Fields): void {
    const { id, from_node, content, redelivered, require_ack } = message;
    const what = `${box} ${String(from_node)} ${String(content)}`;
    const key = `${box} ${String(from_node)}`;
    if (this.got.has(String(id))) {
      if (redelivered !== true || require_ack !== true) this.report.twice.push(what);
      return;
    }
    this.got.add(String(id));
    const n = Number.parseInt(String(content));
    if (n <= (this.#lastOf.get(key) ?? -1)) this.report.disordered.push(what);
    this.#lastOf.set(key, n);
  }
}
