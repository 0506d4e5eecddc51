/**
 * A hub that vanishes from its PostgreSQL while it holds the write lock: its link goes down, as when a cable is cut or its
 * machine loses its power, and nobody tells the server. Another hub on the database must write again soon. The hub runs in
 * a network namespace, behind a slow link, so that each moment of a write can be met.
 */
import { SQL } from "bun";
import { chmodSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { LOCK } from "../../src/store/postgres/migrate.ts";
import { Hub, SECRET, TempDir, until } from "../../test/e2e/program.ts";
import { PROGRAM } from "../../test/support/executable.ts";
import { OWN_HOST } from "../../test/support/keeper.ts";
import { NO_LINK, NetworkLink } from "../../test/support/network-link.ts";
import { POSTGRES_PROGRAMS, PostgresServer } from "../../test/support/postgres.ts";
import { type Section, notRun } from "./section.ts";

/** Writes at the other hubs go on after this time at most. */
const GOAL_MS = 10_000;
/** Longer is not watched: TCP itself would give up after a quarter of an hour. */
export const WATCHED_MS = 60_000;
/** How long a link is down, and after which time at most the hub behind it answers again. */
const AWAY_MS = 15_000;
const BACK_MS = 5_000;
const ANSWER_MS = 1_000;
const RATE = "4mbit";
const NODE = "far-worker";
const MESSAGES = 33;
const CONTENT = "x".repeat(250 * 1024);
const DESCRIPTION = "d".repeat(60 * 1024);
/** Together more than the socket of the server takes in while the link is slow. */
const LARGE_TASKS = 12;

/** Why it cannot be run here; null when it can. */
export function whyNoVanishedHub(): string | null {
  return POSTGRES_PROGRAMS === null ? "no PostgreSQL of our own can be started here" : NO_LINK;
}

/** How long the other hub wrote nothing, in ms, by the moment at which the link went down. */
export type Vanished = { readonly when: string; readonly stoppedMs: number };

/** The session of the far hub that writes, as the server shows it. */
type Backend = { readonly state: string; readonly waits: string; readonly holds: boolean };

class Scene implements AsyncDisposable {
  readonly link: NetworkLink;
  readonly #dir: TempDir;
  readonly #sql: SQL;
  readonly #postgres: PostgresServer;
  #near: Hub | null = null;
  #far: Hub | null = null;

  private constructor(postgres: PostgresServer, link: NetworkLink, dir: TempDir) {
    this.#postgres = postgres;
    this.link = link;
    this.#dir = dir;
    this.#sql = new SQL(postgres.url, { max: 4 });
  }

  static async start(): Promise<Scene> {
    const link = new NetworkLink();
    const dir = new TempDir();
    chmodSync(dir.path, 0o755); // the server runs as another user
    const access = dir.join("pg_hba.conf");
    writeFileSync(access, "local all all trust\nhost all all all trust\n");
    const settings = { listen_addresses: `${OWN_HOST},${link.here}`, hba_file: access };
    const scene = new Scene(await PostgresServer.start(tmpdir(), settings), link, dir);
    await scene.#startHubs();
    return scene;
  }

  async #startHubs(): Promise<void> {
    const { url } = this.#postgres;
    this.#near = await Hub.start({ data: this.#dir.join("near"), env: { LUXHUB_DATABASE: url } });
    const through = new URL(url);
    through.hostname = this.link.here;
    this.#far = await Hub.start({
      command: [...this.link.command, ...PROGRAM],
      data: this.#dir.join("far"),
      env: { LUXHUB_DATABASE: through.href, LUXHUB_HOST: this.link.there },
    });
    await this.near.register(NODE);
    this.link.slow(RATE);
  }

  get near(): Hub {
    if (!this.#near) throw new Error("not started");
    return this.#near;
  }

  /** Asks the far hub; nobody waits for the answer, which may never come. */
  ask(path: string, body: object): void {
    const url = `http://${this.link.there}:${this.#far?.port}/api/v1${path}`;
    const headers = { "X-Matrix-Secret": SECRET };
    void fetch(url, { method: "POST", headers, body: JSON.stringify(body), keepalive: false }).catch(
      () => {},
    );
  }

  /** A list from the far hub, with a secret: the status, and null when there was no answer in time. */
  async listAtFar(secret: string): Promise<number | null> {
    const url = `http://${this.link.there}:${this.#far?.port}/api/v1/message/history?node_id=${NODE}`;
    const init = {
      headers: { "X-Matrix-Secret": secret },
      signal: AbortSignal.timeout(ANSWER_MS),
      keepalive: false,
    };
    return fetch(url, init).then(
      ({ status }) => status,
      () => null,
    );
  }

  /** The far hub as a machine without power: it neither reads nor sends. */
  freezeFar(): void {
    this.#far?.program.child.kill("SIGSTOP");
  }

  /** Waits until the far hub's session that has or wants the write lock is so. */
  async session(isSo: (backend: Backend) => boolean): Promise<void> {
    await until(
      async () => {
        const rows: readonly Backend[] = await this.#sql`
        SELECT coalesce(state, '') AS state, coalesce(wait_event, '') AS waits, l.granted AS holds
        FROM pg_stat_activity a JOIN pg_locks l USING (pid)
        WHERE l.locktype = 'advisory' AND a.client_addr = ${this.link.there}::inet`;
        return rows.some(isSo);
      },
      WATCHED_MS,
      5,
    );
  }

  unsent(): number {
    return this.link.unsentTo(Number(new URL(this.#postgres.url).port));
  }

  /** Runs `work` while nobody can write. */
  async holding(statement: string, work: () => Promise<void>): Promise<void> {
    const session = await this.#sql.reserve();
    try {
      await session.unsafe("BEGIN");
      await session.unsafe(statement);
      await work();
    } finally {
      await session.unsafe("ROLLBACK");
      session.release();
    }
  }

  /** From now until a write at the other hub succeeds that is asked from now on. */
  async stopped(): Promise<number> {
    const startedMs = performance.now();
    while (performance.now() - startedMs < WATCHED_MS) {
      const { status } = await this.near.post("/task/create", { title: "t", description: "d" });
      if (status === 200) break;
      await Bun.sleep(100);
    }
    return performance.now() - startedMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const hub of [this.#far, this.#near]) await hub?.[Symbol.asyncDispose]();
    await this.#sql.close({ timeout: 0 });
    await this.#postgres.remove();
    this.link[Symbol.dispose]();
    this.#dir[Symbol.dispose]();
  }
}

/** In which TCP alone would stop the other hubs. */
export const WHILE_SENDING = "while the server sends to it";

/** Each brings the far hub's session to its moment, with the write lock. */
const MOMENTS: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  async "while the server waits for it in the transaction"(scene) {
    await scene.holding(LOCK.write, async () => {
      scene.ask("/task/create", { title: "t", description: "d" });
      await scene.session(({ holds, waits }) => !holds && waits === "advisory");
      scene.freezeFar();
    });
    await scene.session(({ holds, state }) => holds && state === "idle in transaction");
  },
  async [WHILE_SENDING](scene) {
    for (let i = 0; i < MESSAGES; i++)
      await scene.near.post("/message/send", { from_node: "op", to_node: NODE, content: CONTENT });
    scene.ask("/message/receive", { node_id: NODE, count: MESSAGES });
    await scene.session(({ holds, waits }) => holds && waits === "ClientWrite");
  },
  async "while it sends to the server"(scene) {
    const requests = Array.from({ length: LARGE_TASKS }, (_, i) => {
      return { path: "task/create", body: { title: `t${i}`, description: DESCRIPTION } };
    });
    await scene.holding(LOCK.write, async () => {
      scene.ask("/batch", { requests });
      await scene.session(({ holds, waits }) => !holds && waits === "advisory");
    });
    await until(() => scene.unsent() > DESCRIPTION.length, WATCHED_MS, 5);
    await scene.session(({ holds }) => holds);
  },
  async "between BEGIN and COMMIT, in a statement"(scene) {
    await scene.holding("LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE", async () => {
      scene.ask("/task/claim", { task_id: "none", node_id: NODE });
      await scene.session(({ holds, waits }) => holds && waits === "relation");
      scene.link.down();
    });
  },
};

/** The moments, or one of them, each with servers of its own. */
export async function measureVanished(
  progress: (line: string) => void,
  only: string | null = null,
): Promise<readonly Vanished[]> {
  const found: Vanished[] = [];
  for (const [when, reach] of Object.entries(MOMENTS)) {
    if (only !== null && when !== only) continue;
    await using scene = await Scene.start();
    await reach(scene);
    scene.link.down();
    const stoppedMs = await scene.stopped();
    progress(`${when}: writes went on after ${stoppedMs.toFixed(0)} ms`);
    found.push({ when, stoppedMs });
  }
  return found;
}

/** A hub that was cut off and is back: what it answers to a key that was made meanwhile, and after which time. */
export type Back = { readonly statuses: readonly (number | null)[]; readonly tookMs: number };

export async function measureBack(awayMs: number): Promise<Back> {
  await using scene = await Scene.start();
  await until(async () => (await scene.listAtFar(SECRET)) === 200);
  scene.link.disconnect();
  await Bun.sleep(awayMs); // what this is about
  const { body } = await scene.near.admin("/key/add", { name: "meanwhile" });
  scene.link.connect();
  const startedMs = performance.now();
  const statuses: (number | null)[] = [];
  while (statuses.at(-1) !== 200 && performance.now() - startedMs < WATCHED_MS)
    statuses.push(await scene.listAtFar(String(body["secret"])));
  return { statuses, tookMs: performance.now() - startedMs };
}

/** The long form. */
export const vanishedHubSection: Section = {
  name: "vanished-hub",
  title: "A hub that vanishes",
  limitMs: 10 * 60_000,
  async run(_scale, _seed, progress) {
    const reason = whyNoVanishedHub();
    if (reason !== null) return [notRun("Link down while a hub holds the write lock", reason)];
    const found = await measureVanished(progress);
    const { statuses, tookMs } = await measureBack(AWAY_MS);
    const refused = statuses.filter((status) => status === 401).length;
    const figures = found.map(({ when, stoppedMs }) => ({
      what: `Link down ${when}: writes at another hub go on after, ms`,
      value: stoppedMs.toFixed(0),
      goal: `< ${GOAL_MS}`,
      held: stoppedMs < GOAL_MS,
    }));
    return [
      ...figures,
      {
        what: `Link up again after ${AWAY_MS / 1_000} s: 401 for a key that was made meanwhile; answered after, ms`,
        value: `${refused}; ${tookMs.toFixed(0)}`,
        goal: `0; < ${BACK_MS}`,
        held: refused === 0 && tookMs < BACK_MS,
      },
    ];
  },
};
