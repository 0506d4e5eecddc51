/**
 * A copy of a hub's database that runs the entries of its change log, and must then have the same rows. It begins when the
 * hub is new.
 */
import { Database } from "bun:sqlite";
import { copyFileSync } from "node:fs";
import { makeDataDir } from "../../src/data-dir.ts";
import { keepChanges } from "../../src/store/sqlite/change-log.ts";
import { openSqlite } from "../../src/store/sqlite/engine.ts";
import { catchUp, differences } from "../../test/support/same-rows.ts";

export class Follower {
  readonly #path: string;
  readonly #copy: Database;

  private constructor(path: string, copy: Database) {
    this.#path = path;
    this.#copy = copy;
  }

  /** Makes the database of a hub in `data`, which keeps its change log, and a copy in the file `to`. */
  static async begin(data: string, to: string): Promise<Follower> {
    const { database } = makeDataDir(data);
    await openSqlite(database, () => {}).close();
    const original = new Database(database);
    keepChanges(original, true);
    original.close();
    copyFileSync(database, to);
    const copy = new Database(to);
    copy.run("PRAGMA synchronous = OFF");
    return new Follower(database, copy);
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
