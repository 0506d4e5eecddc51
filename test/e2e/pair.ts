/** The machines of a hub and its copies, each a data directory of the real program. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { OWN_HOST } from "../support/keeper.ts";
import { differences } from "../support/same-rows.ts";
import { type Answer, Hub, TempDir, listOf, run, until } from "./program.ts";

export class Machines implements Disposable {
  readonly dir = new TempDir();

  data(name: string): string {
    return this.dir.join(name);
  }

  /** At the port that it had, if it had one. */
  start(name: string, args: readonly string[] = [], port = 0): Promise<Hub> {
    return Hub.start({
      data: this.data(name),
      host: OWN_HOST,
      args: [...args, "--port", `${port}`],
      ownSecrets: false,
    });
  }

  async command(name: string, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await run([...args, "--data", this.data(name)], { cwd: this.dir.path });
    if (code !== 0) throw new Error(`${args.join(" ")}: exit code ${code}: ${stderr}`);
    return stdout;
  }

  async join(first: Hub, of: string, name: string): Promise<void> {
    const url = first.api.replace("/api/v1", "");
    const line = await this.command(of, "invite", name, "--standby", "--join-url", url);
    await this.command(name, "join", line.trim().replace("luxhub join ", ""));
  }

  [Symbol.dispose](): void {
    this.dir[Symbol.dispose]();
  }
}

export type Copy = {
  readonly role: string;
  readonly term: number;
  readonly entry: number;
  readonly hub: string | null;
  readonly standbys: readonly {
    readonly name: string;
    readonly following: boolean;
    readonly fault: string | null;
    readonly lag_entries: number;
  }[];
};

export async function copyOf(hub: Hub): Promise<Copy> {
  const { copy } = (await hub.get("/status")).body as { readonly copy: Copy };
  return copy;
}

export async function add(hub: Hub, title: string): Promise<Answer> {
  return hub.post("/task/create", { title, description: "d" });
}

/** As soon as it accepts writes: it is opened again in its new role. */
export async function addWhenFirst(hub: Hub, title: string): Promise<void> {
  await until(async () => (await add(hub, title).catch(() => null))?.status === 200);
}

/** Of all tasks. */
export async function titles(hub: Hub): Promise<readonly string[]> {
  const found: string[] = [];
  for (let page = 1; ; page++) {
    const tasks = listOf((await hub.get(`/task/list?per_page=100&page=${page}`)).body["tasks"]);
    if (tasks.length === 0) return found.toSorted();
    found.push(...tasks.map(({ title }) => String(title)));
  }
}

export async function caughtUp(first: Hub, standby: Hub): Promise<void> {
  const { entry } = await copyOf(first);
  await until(async () => (await copyOf(standby)).entry >= entry);
}

/** The log is shorter where a hub has forgotten more: what both have is compared. */
export function differing(machines: Machines, one: string, other: string): readonly string[] {
  const open = (name: string): Database =>
    new Database(join(machines.data(name), "luxhub.db"), { readonly: true });
  using left = open(one);
  using right = open(other);
  const oldest = [left, right].map(
    (db) => db.query<{ n: number }, []>("SELECT min(n) AS n FROM changes").get()?.n ?? 0,
  );
  const [ours, theirs] = [left, right].map((db) =>
    db.query("SELECT n, at, hex(body) FROM changes WHERE n >= ? ORDER BY n").values(Math.max(...oldest)),
  );
  const tables = differences(left, right).filter((line) => !line.startsWith("changes:"));
  return [...tables, ...(Bun.deepEquals(ours, theirs) ? [] : ["changes"])];
}

export const urlOf = (hub: Hub): string => hub.api.replace("/api/v1", "");
