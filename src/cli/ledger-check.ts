/**
 * Verifies an exported ledger line by line (`luxhub lux verify`): the numbers have no gap, every hash is that of its entry
 * and of the hash before it, and a hash that was noted earlier is there. Needs no hub. Memory does not grow with the
 * export, but for one sum for each held reward.
 */
import { GENESIS_HASH, EMPTY_LEDGER, type HashedEntry, chainFault, toLux, toMicro } from "../domain/lux.ts";
import type { LedgerHead } from "../domain/model.ts";
import { isoTime } from "../lib/clock.ts";
import { instantMs } from "../lib/duration.ts";
import { parseExact } from "../lib/exact-json.ts";

const SHOWN = 5;

type ExportedEntry = HashedEntry & { readonly prevHash: string | null; readonly hash: string | null };

export type LedgerReport = {
  readonly faults: readonly string[];
  readonly more: number;
  readonly summary: string;
};

export class LedgerCheck {
  readonly #noted: string | null;
  #notedAt: number | null = null;
  readonly #faults: string[] = [];
  #more = 0;
  #lines = 0;
  #entries = 0;
  #unhashed = 0;
  #head: LedgerHead = EMPTY_LEDGER;
  #paidMicro = 0n;
  readonly #held = new Map<string, bigint>();

  constructor(noted: string | null) {
    this.#noted = noted;
  }

  take(line: string): void {
    this.#lines++;
    if (line.trim() === "") return;
    const entry = entryOf(line);
    if (typeof entry === "string") return this.#report(`line ${this.#lines}: ${entry}`);
    this.#entries++;
    if (entry.hash === null) this.#unhashed++;
    const prevHash = entry.hash === null ? null : (this.#head.hash ?? GENESIS_HASH);
    const fault =
      chainFault(entry, this.#head) ??
      (entry.prevHash === prevHash ? null : `the prev_hash of entry ${entry.seq} is not the hash before it`);
    if (fault !== null) this.#report(`line ${this.#lines}: ${fault}`);
    if (entry.hash !== null && entry.hash === this.#noted) this.#notedAt = entry.seq;
    this.#move(entry);
    this.#head = entry; // one fault is not a fault of every entry behind it
  }

  end(): LedgerReport {
    for (const [account, micro] of this.#held)
      if (micro < 0n) this.#report(`${account} gives ${toLux(-micro)} LUX that it never had`);
    if (this.#noted !== null && this.#notedAt === null)
      this.#report(`no entry has the hash ${this.#noted}: entries are missing, or the ledger was rewritten`);
    return { faults: this.#faults, more: this.#more, summary: this.#summary() };
  }

  #summary(): string {
    const heldMicro = this.#held.values().reduce((sum, micro) => sum + micro, 0n);
    const parts = [`${this.#entries} entries`, `${toLux(this.#paidMicro)} LUX paid`];
    if (heldMicro !== 0n) parts.push(`${toLux(heldMicro)} LUX held back`);
    if (this.#unhashed > 0) parts.push(`${this.#unhashed} entries are older than the hash chain`);
    if (this.#notedAt !== null) parts.push(`the noted hash is that of entry ${this.#notedAt}`);
    parts.push(`head ${this.#head.seq} ${this.#head.hash ?? "without a hash"}`);
    return parts.join(", ");
  }

  #move({ from, to, amountMicro }: ExportedEntry): void {
    if (to.startsWith("node:")) this.#paidMicro += BigInt(amountMicro);
    this.#add(to, BigInt(amountMicro));
    this.#add(from, -BigInt(amountMicro));
  }

  #add(account: string, micro: bigint): void {
    if (!account.startsWith("held:")) return;
    const sum = (this.#held.get(account) ?? 0n) + micro;
    if (sum === 0n) this.#held.delete(account);
    else this.#held.set(account, sum);
  }

  #report(fault: string): void {
    if (this.#faults.length < SHOWN) this.#faults.push(fault);
    else this.#more++;
  }
}

const FIELDS = ["seq", "id", "node_id", "from", "to", "amount", "kind", "task_id", "at", "prev_hash", "hash"];
const ACCOUNT = /^(?:treasury|held:.+|node:.+)$/;

function entryOf(line: string): ExportedEntry | string {
  let value: unknown;
  try {
    value = parseExact(line);
  } catch {
    return "it is not JSON";
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "it is no JSON object";
  const fields = new Map<string, unknown>(Object.entries(value));
  const strange = [...fields.keys()].find((name) => !FIELDS.includes(name));
  if (strange !== undefined) return `an entry has no ${JSON.stringify(strange)}`;
  const missing = FIELDS.find((name) => !fields.has(name));
  if (missing !== undefined) return `it has no ${missing}`;
  return decode(fields);
}

function decode(fields: ReadonlyMap<string, unknown>): ExportedEntry | string {
  const [seq, id, nodeId, from, to, amount, kind, taskId, at, prevHash, hash] = FIELDS.map((name) =>
    fields.get(name),
  );
  if (typeof seq !== "number" || !Number.isSafeInteger(seq)) return "its seq is no whole number";
  const amountMicro = typeof amount === "number" ? toMicro(amount) : null;
  if (amountMicro === null) return "its amount is not LUX with at most 6 decimals";
  const atMs = typeof at === "string" ? instantMs(at) : null;
  if (atMs === null || isoTime(atMs) !== at) return "its at is no time";
  if (typeof id !== "string" || !isKind(kind)) return "its id or its kind is none";
  if (!isAccount(from) || !isAccount(to)) return "its from or its to is no account";
  if (!isMaybeText(taskId) || !isMaybeText(prevHash) || !isMaybeText(hash))
    return "its task_id, prev_hash or hash is neither a string nor null";
  if (nodeId !== (to.startsWith("node:") ? to.slice("node:".length) : null))
    return "its node_id is not that of the account that it goes to";
  return { seq, id, from, to, amountMicro, kind, taskId, at: atMs, prevHash, hash };
}

function isAccount(value: unknown): value is HashedEntry["from"] {
  return typeof value === "string" && ACCOUNT.test(value);
}

function isKind(value: unknown): value is HashedEntry["kind"] {
  return value === "reward" || value === "signin" || value === "hold" || value === "return";
}

function isMaybeText(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}
