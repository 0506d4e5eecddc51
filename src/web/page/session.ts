/**
 * The session: the secret, its role, and the client that sends it. Everything stays in the tab (sessionStorage) and
 * ends with it. Must not: put a secret into a URL, a log or another store.
 */
import { computed, signal } from "@preact/signals";
import { HubUnreachable, LuxHub, LuxHubError, type Variant } from "../../client/luxhub.ts";

/** The variant of the answers is that of the listener, or of the key. */
export type Hub = LuxHub<Variant>;

/** `none`: A's public reads, without a secret. */
export type Role = "full" | "viewer" | "none";

export type Session = {
  readonly secret: string | undefined;
  readonly adminKey: string | undefined;
  readonly role: Role;
};

/** Why the user has to sign in again. */
export const signedOut = signal("");
/** False while the hub cannot be reached. */
export const isOnline = signal(true);

/** The page stands at the root of the hub, or of a prefix of a proxy. */
const BASE = new URL(".", location.href).href;

/** By the hub: a proxy may serve several under prefixes of one origin, and the secret is for one of them. */
const STORED = `luxhub.session ${BASE}`;

export const session = signal<Session | null>(stored());

const RETRY_MS = 4_000;

export function hubOf({ secret, adminKey }: Pick<Session, "secret" | "adminKey">): Hub {
  return new LuxHub<Variant>({ url: BASE, secret, adminKey, retry: { forMs: RETRY_MS }, fetch: observed });
}

export const hub = computed(() => hubOf(session.value ?? { secret: undefined, adminKey: undefined }));
/** Whether the user may change things, and read messages. */
export const mayAct = computed(() => session.value?.role === "full");
export const isAdmin = computed(() => mayAct.value && session.value?.adminKey !== undefined);
/** Whether endpoints answer that need a secret. */
export const hasSecret = computed(() => session.value !== null && session.value.role !== "none");

async function observed(url: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, init);
    isOnline.value = true;
    return response;
  } catch (error) {
    if (!init.signal?.aborted) isOnline.value = false;
    throw error;
  }
}

/** Finds out what the secret may do. @throws {LuxHubError} when the hub does not know the secret or the administrator key */
export async function signIn(secret: string, adminKey: string): Promise<void> {
  const given = { secret: secret || undefined, adminKey: adminKey || undefined };
  const role = given.secret === undefined ? await anonymous(given) : await roleOf(given);
  if (role === "full" && given.adminKey !== undefined) await hubOf(given).keys.list({});
  session.value = { ...given, role };
  sessionStorage.setItem(STORED, JSON.stringify(session.value));
  signedOut.value = "";
}

export function signOut(reason = ""): void {
  sessionStorage.removeItem(STORED);
  session.value = null;
  signedOut.value = reason;
}

async function anonymous(given: Pick<Session, "secret" | "adminKey">): Promise<Role> {
  try {
    await hubOf(given).tasks.stats();
  } catch (error) {
    const isClosed = error instanceof LuxHubError && error.status === 401;
    throw isClosed ? new Error("This hub shows nothing without the secret.") : error;
  }
  return "none";
}

/** Probes with a read that viewers may not do: others get "no such node". */
async function roleOf(given: Pick<Session, "secret" | "adminKey">): Promise<Role> {
  try {
    await hubOf(given).messages.parked({ node_id: "luxhub.dashboard" });
  } catch (error) {
    if (!(error instanceof LuxHubError)) throw error;
    if (error.code === "viewer_not_allowed") return "viewer";
    if (error.status === 401 || error.status === 429 || error.status >= 500) throw error;
  }
  return "full";
}

function stored(): Session | null {
  const text = sessionStorage.getItem(STORED);
  // Written by signIn() alone.
  return text === null ? null : (JSON.parse(text) as Session);
}

/** What to tell the user about a fault. Signs out when the secret was revoked. */
export function describe(error: unknown): string {
  if (error instanceof HubUnreachable) return "The hub cannot be reached.";
  if (!(error instanceof LuxHubError)) return error instanceof Error ? error.message : String(error);
  if (error.code === "unauthorized" && session.value !== null) {
    signOut(
      session.value.secret === undefined ? "This action needs the secret." : "The secret is no longer valid.",
    );
  }
  return error.detail.replace(/ in the header [\w-]+(?: or Authorization: Bearer)?/, ""); // names the invalid fields too; a user sends no headers
}
