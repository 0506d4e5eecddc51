/**
 * The session: the secret, its role, and the client that sends it. Open tabs of a hub share it (BroadcastChannel); a
 * device keeps it only if the user asks for that. Must not: put a secret into a URL or a log.
 */
import type { Call } from "../../client/call.ts";
import { HubCalls } from "../../client/hub-calls.ts";
import { HubUnreachable, LuxHubError } from "../../client/http.ts";
import type { Variant } from "../../client/luxhub.ts";
import { parseExact } from "../../lib/exact-json.ts";
import { noticeDate } from "./clock.ts";
import { Shared, drawn } from "./shared.ts";

export type Hub = HubCalls<Variant>;

/** `none`: A's public reads, without a secret. */
export type Role = "full" | "viewer" | "none";

type Credentials = { readonly secret: string | undefined; readonly adminKey: string | undefined };

type Session = Credentials & {
  readonly role: Role;
  readonly bounds: string;
};

/** Why the user has to sign in again; empty while the session is valid. The page stays, with the forms on it. */
export const expired = drawn("");
export const isPutAway = drawn(false);
export const isOnline = drawn(true);

const BASE = new URL(".", location.href).href;

/** By the hub: a proxy may serve several under prefixes of one origin, and the secret is for one of them. */
const STORED = `luxhub.session ${BASE}`;
/** What the user saw last (looked.tsx): it ends with the session. */
export const LOOKED = STORED.replace("session", "looked");

export const session = drawn<Session | null>(stored());

const RETRY_MS = 4_000;

function hubOf({ secret, adminKey }: Credentials, send = observed): Hub {
  const options = { retry: { forMs: RETRY_MS }, fetch: send, parseJson: parseExact, followsHubs: false };
  return new HubCalls<Variant>({ url: BASE, secret, adminKey, ...options });
}

const NOTHING: Credentials = { secret: undefined, adminKey: undefined };
let ended: Session | null = null;

/** With a secret that is no longer valid it sends nothing: the hub refuses an address that sends many wrong ones. */
function clientOf(given: Session | null): Hub {
  return hubOf(given ?? NOTHING, (url, init) => {
    if (given === null || given !== ended) return observed(url, init);
    throw new LuxHubError({ status: 401, code: "unauthorized", detail: expired.value });
  });
}

export const hub = new Shared(clientOf(session.value));
session.follow(() => (hub.value = clientOf(session.value)));

export type Ask = Call<Variant>;

/** For what a view, or a long action, asks: it is given up at the signal. */
export function askUntil(signal: AbortSignal, from = hub.value): Ask {
  return (operation, ...args) => from.call(operation, ...([args[0], { signal }] as typeof args)); // as it was given
}

/** For what the user does: it is carried out even if the user goes to another view. */
export const call: Ask = (operation, ...args) => hub.value.call(operation, ...args);

export const mayAct = (): boolean => session.value?.role === "full";
/** The node to which the key is bound. */
export const boundTo = (): string | undefined =>
  /^This key acts for (\S+) only\.$/.exec(session.value?.bounds ?? "")?.[1];
/** With a key that is bound to a node: only for what is, or is made by, this node. */
export const mayActFor = (node: string | null | undefined): boolean =>
  mayAct() && (boundTo() ?? node) === node;
export const isAdmin = (): boolean => mayAct() && session.value?.adminKey !== undefined;
export const hasSecret = (): boolean => session.value !== null && session.value.role !== "none";

async function observed(url: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, init);
    isOnline.value = true;
    noticeDate(response.headers.get("date"));
    return response;
  } catch (error) {
    if (!init.signal?.aborted) isOnline.value = false;
    throw error;
  }
}

// ---- Sign-in

/**
 * Finds out what the secret may do.
 * @param stays whether this device keeps the secret until the user signs out
 * @throws {LuxHubError} when the hub does not know the secret or the administrator key
 */
export async function signIn(secret: string, adminKey: string, stays: boolean): Promise<void> {
  const given = { secret: secret || undefined, adminKey: adminKey || undefined };
  const probed = await probe(given);
  if (probed.role === "full" && given.adminKey !== undefined) await hubOf(given).call("key/list", {});
  if (stays) localStorage.setItem(STORED, JSON.stringify({ ...given, ...probed }));
  enter({ ...given, ...probed });
  tellTabs({ kind: "session", session: { ...given, ...probed } });
}

/** With the code of the link that the hub printed at its start. */
async function signInWith(code: string): Promise<void> {
  try {
    const response = await fetch("sign-in", { method: "POST", headers: { "X-Sign-In-Code": code } });
    const { secret = "", admin_key = "", detail = "" } = Object(await response.json());
    if (!response.ok) throw new Error(String(detail));
    await signIn(String(secret), String(admin_key), false);
  } catch (error) {
    linkFault.value = describe(error);
  }
}

function enter(given: Session): void {
  sessionStorage.setItem(STORED, JSON.stringify(given));
  session.value = given;
  expired.value = "";
  isPutAway.value = false;
}

export function signOut(): void {
  tellTabs({ kind: "out", secret: session.value?.secret });
  forget();
}

function forget(): void {
  sessionStorage.removeItem(STORED);
  for (const kept of [STORED, LOOKED]) localStorage.removeItem(kept);
  session.value = null;
  expired.value = "";
}

export async function checkSession(): Promise<void> {
  const before = session.value;
  if (before === null || expired.value !== "") return;
  try {
    const { role, bounds } = await probe(before);
    if (session.value !== before || (role === before.role && bounds === before.bounds)) return;
    enter({ ...before, role, bounds });
  } catch (error) {
    describe(error);
  }
}

type Probed = Pick<Session, "role" | "bounds">;

async function probe(given: Credentials): Promise<Probed> {
  if (given.secret !== undefined) return roleOf(given);
  try {
    await hubOf(given).call("task/stats");
  } catch (error) {
    const isClosed = error instanceof LuxHubError && error.status === 401;
    throw isClosed ? new Error("This hub shows nothing without the secret.") : error;
  }
  return { role: "none", bounds: "Without a secret you can only read." };
}

/** Probes with a read that viewers may not do: others get "no such node". */
async function roleOf(given: Credentials): Promise<Probed> {
  try {
    await hubOf(given).call("message/parked", { node_id: "luxhub.dashboard" });
  } catch (error) {
    if (!(error instanceof LuxHubError)) throw error;
    if (error.code === "viewer_not_allowed")
      return { role: "viewer", bounds: "A viewer key can only read, and no messages." };
    if (error.code === "key_bound_to_other_node")
      return { role: "full", bounds: error.detail.replace(/(?<=\.) .*/, "") };
    if (error.status === 401 || error.status === 429 || error.status >= 500) throw error;
  }
  return { role: "full", bounds: "" };
}

function stored(): Session | null {
  const text = sessionStorage.getItem(STORED) ?? localStorage.getItem(STORED);
  // Written by signIn() alone.
  return text === null ? null : (JSON.parse(text) as Session);
}

// ---- Tabs of the same hub

type TabMessage =
  | { readonly kind: "ask" }
  | { readonly kind: "session"; readonly session: Session }
  | { readonly kind: "out"; readonly secret: string | undefined };

const tabs = new BroadcastChannel(STORED);

function tellTabs(message: TabMessage): void {
  tabs.postMessage(message);
}

tabs.addEventListener("message", ({ data }: MessageEvent<TabMessage>) => {
  const known = session.value;
  if (data.kind === "ask" && known !== null && expired.value === "")
    tellTabs({ kind: "session", session: known });
  if (data.kind === "session" && (known === null || expired.value !== "")) enter(data.session);
  if (data.kind === "out" && known !== null && known.secret === data.secret) forget();
});

const ASK_MS = 150;

export const isReady = drawn(session.value !== null);

/** Why the link that the hub printed at its start did not sign in. */
export const linkFault = drawn("");

const [, code] = /^#sign-in=([\w-]+)$/.exec(location.hash) ?? [];
if (code !== undefined) {
  location.replace("#/"); // the code is for one use, and in no history
  void signInWith(code).finally(() => (isReady.value = true));
} else if (!isReady.value) {
  tellTabs({ kind: "ask" });
  const ready = (): boolean => (isReady.value = true);
  setTimeout(ready, ASK_MS);
  session.follow(ready);
}

// ---- Faults

/** What to tell the user about a fault. Asks for the secret again when it was revoked. */
export function describe(error: unknown): string {
  if (error instanceof HubUnreachable) return "The hub cannot be reached.";
  if (!(error instanceof LuxHubError)) return error instanceof Error ? error.message : String(error);
  if (error.code === "unauthorized" && session.value !== null && expired.value === "") {
    if (session.value.secret !== undefined) ended = session.value;
    expired.value =
      session.value.secret === undefined ? "This action needs the secret." : "The secret is no longer valid.";
    isPutAway.value = false;
  }
  // It names the invalid fields too. A user sends no headers, and calls no endpoints.
  return error.detail
    .replace(/ in the header [\w-]+(?: or Authorization: Bearer)?/, "")
    .replace(/(?<=\.) [^.]*(?:GET|POST) \/api\/v1\/[^.]*\.$/, "");
}
