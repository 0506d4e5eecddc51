/** A copy of a hub's database that runs the entries of its change log, and must then have the same rows. */
import { Database } from "bun:sqlite";
import { makeDataDir } from "../../src/data-dir.ts";
import { must } from "../../src/lib/assert.ts";
import { keepChanges } from "../../src/store/sqlite/change-log.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import type { Hub } from "../../test/e2e/program.ts";
import { catchUp, differences } from "../../test/support/same-rows.ts";

export class Follower {
  readonly #path: string;
  readonly #copy: Database;

  private constructor(path: string, copy: Database) {
    this.#path = path;
    this.#copy = copy;
  }

  /** Makes a database in `data`, which keeps its change log until a hub runs on it, and a copy in the file `to`. */
  static async ofNew(data: string, to: string): Promise<Follower> {
    const { database } = makeDataDir(data);
    await openSqlite(database, () => {}).close();
    using original = new Database(database);
    keepChanges(original, true);
    return Follower.#copying(original, to);
  }

  /** As a standby that asks a running hub once: from then on the hub keeps all entries for it. */
  static async of(hub: Hub, data: string, to: string): Promise<Follower> {
    const { body } = await hub.admin("/standby/invite", { name: "follower" });
    const [, secret = ""] = must(/#standby\.([^.]+)/.exec(String(body["line"])), "a line has a secret");
    using original = new Database(makeDataDir(data).database, { readonly: true });
    const oldest = original.query<{ n: number; at: number }, []>("SELECT min(n) AS n, at FROM changes").get();
    const { n, at } = must(oldest, "an aggregate has a row");
    const place = `/copy/changes?after=${n}&at=${at}&term=1`;
    const { status } = await hub.get(place, { headers: { "X-Matrix-Secret": secret } });
    if (status !== 200) throw new Error(`${place}: ${status}`);
    return Follower.#copying(original, to);
  }

  static #copying(original: Database, to: string): Follower {
    original.run("VACUUM INTO ?", [to]);
    const copy = new Database(to);
    copy.run("PRAGMA synchronous = OFF");
    return new Follower(original.filename, copy);
  }

  /** Also while the hub runs. @throws {Error} when an entry does not fit the copy */
  catchUp(): void {
    this.#withOriginal((original) => catchUp(this.#copy, original));
  }

  /** Runs the entries that there are, and compares the two as they then are. */
  differences(): readonly string[] {
    return this.#withOriginal((original) => {
      catchUp(this.#copy, original);
      return differences(original, this.#copy);
    });
  }

  close(): void {
    this.#copy.close();
  }

  #withOriginal<T>(use: (original: Database) => T): T {
    using original = new Database(this.#path, { readonly: true });
    original.run("BEGIN"); // one moment
    return use(original);
  }
}
