/**
 * Key rules: creation, expiry and revocation of secrets (specification 5). The hub stores the SHA-256 of a secret, and
 * shows the secret itself only once, at its creation.
 */
import type { Change } from "./change.ts";
import { type Decision, accept, reject } from "./decision.ts";
import { actorOf, signed } from "./event.ts";
import { SESSIONS_MAX } from "./limits.ts";
import type { KeyRecord } from "./model.ts";
import { HUB_LIMITS, refusesMore } from "./shares.ts";

/** The ids of the two keys that come from the environment or the data directory. */
export const PRIMARY_KEY_ID = "primary";
export const PRIMARY_ADMIN_KEY_ID = "primary-admin";

export function isValid(key: KeyRecord, now: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || key.expiresAt > now);
}

/** The end of a binding to a node and its numbered sessions: NODE, NODE.2, NODE.3, … */
export const WITH_SESSIONS = ".*";

const SESSION_NUMBER = new RegExp(`^[1-9]\\d{0,${String(SESSIONS_MAX).length - 1}}$`);

/** The key in a request that names a node: a key with sessions acts for one of them at a time. */
export function actingFor(key: KeyRecord, named: string | null): KeyRecord {
  if (!key.nodeId?.endsWith(WITH_SESSIONS)) return key;
  const node = key.nodeId.slice(0, -WITH_SESSIONS.length);
  const isSession = named?.startsWith(`${node}.`) && SESSION_NUMBER.test(named.slice(node.length + 1));
  return { ...key, nodeId: isSession ? named : node };
}

export const KEY_STATES = ["valid", "expired", "revoked"] as const;

type KeyState = (typeof KEY_STATES)[number];

export function stateOf(key: KeyRecord, now: number): KeyState {
  if (key.revokedAt !== null) return "revoked";
  return isValid(key, now) ? "valid" : "expired";
}

/** A revoked key keeps its name. `all`: every key of the hub. */
export function addKey(key: KeyRecord, all: readonly KeyRecord[]): Decision<KeyRecord> {
  if (all.some(({ keyId }) => keyId === key.keyId))
    return reject("key_exists", `The key name ${key.keyId} is already in use, or was. Choose another name.`);
  if (all.some(({ hash }) => hash === key.hash))
    return reject("key_exists", "This secret is that of another key already. Make a new, random one.");
  const full = refusesMore(HUB_LIMITS.keys, { all: all.length, ofNode: 0 }, null);
  return full ?? accept(key, [{ kind: "key.saved", key }]);
}

/** A repeat changes nothing. */
export function revokeKey(keyId: string, all: readonly KeyRecord[], now: number): Decision<KeyRecord> {
  const key = all.find((other) => other.keyId === keyId);
  if (!key) return reject("key_not_found", `There is no key ${keyId}. Look its name up in the list of keys.`);
  if (key.revokedAt !== null) return accept(key);
  const revoked = { ...key, revokedAt: now };
  return accept(revoked, [{ kind: "key.saved", key: revoked }]);
}

/** The events of what a person did say with which key, and, behind a proxy that names people, who. */
export function sign(author: string, changes: readonly Change[]): readonly Change[] {
  return changes.map((change) =>
    change.kind === "event.logged" ? { ...change, event: signed(change.event, author) } : change,
  );
}

/** With a bound key, the node's own statements are verified. */
export function markVerified(nodeId: string, changes: readonly Change[]): readonly Change[] {
  return changes.map((change): Change => {
    if (change.kind === "event.logged" && actorOf(change.event) === nodeId)
      return { ...change, event: { ...change.event, verified: true } };
    if (change.kind === "question.settled" && change.question.answeredBy === nodeId)
      return { ...change, question: { ...change.question, verified: true } };
    if (change.kind !== "task.moved") return change;
    const { task } = change;
    const isResult = task.status === "completed" && task.assignedNode === nodeId;
    return isResult ? { ...change, task: { ...task, resultVerified: true } } : change;
  });
}
