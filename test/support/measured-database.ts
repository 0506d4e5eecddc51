/**
 * A database of the system's SQLite, which counts what bun:sqlite does not tell: the steps of its virtual machine, and the
 * pages that a commit writes to the write-ahead log. Both are the same on every machine.
 */
import { CString, type Pointer, dlopen, ptr } from "bun:ffi";
import { statSync } from "node:fs";
import type { Param } from "../../src/store/store.ts";

const LIBRARY = "libsqlite3.so.0";
const SQLITE_ROW = 100;
const SQLITE_DONE = 101;
const VM_STEPS = 4; // SQLITE_STMTSTATUS_VM_STEP
const COPIED = -1; // SQLITE_TRANSIENT
const FRAME_BYTES = 4_096 + 24;

function open() {
  const pointer = { args: ["ptr"], returns: "ptr" } as const;
  const code = { args: ["ptr"], returns: "i32" } as const;
  return dlopen(LIBRARY, {
    sqlite3_open: { args: ["ptr", "ptr"], returns: "i32" },
    sqlite3_close: code,
    sqlite3_errmsg: pointer,
    sqlite3_prepare_v2: { args: ["ptr", "ptr", "i32", "ptr", "ptr"], returns: "i32" },
    sqlite3_bind_int64: { args: ["ptr", "i32", "i64"], returns: "i32" },
    sqlite3_bind_text: { args: ["ptr", "i32", "ptr", "i32", "i64"], returns: "i32" },
    sqlite3_step: code,
    sqlite3_finalize: code,
    sqlite3_stmt_status: { args: ["ptr", "i32", "i32"], returns: "i32" },
  }).symbols;
}

/** Why there is none; null where there is one. */
export const SQLITE_MISSING: string | null = (() => {
  try {
    open();
    return null;
  } catch {
    return `there is no ${LIBRARY}`;
  }
})();

export class MeasuredDatabase implements Disposable {
  readonly #library = open();
  readonly #path: string;
  readonly #db: Pointer;

  constructor(path: string) {
    this.#path = path;
    const place = new BigUint64Array(1);
    this.#check(this.#library.sqlite3_open(textOf(path), ptr(place)));
    this.#db = pointerIn(place);
    this.run("PRAGMA journal_mode = WAL", []);
    this.run("PRAGMA wal_autocheckpoint = 0", []);
  }

  /** Runs a statement to its end. Returns the steps that it took. */
  run(sql: string, params: readonly Param[]): number {
    const library = this.#library;
    const place = new BigUint64Array(1);
    this.#check(library.sqlite3_prepare_v2(this.#db, textOf(sql), -1, ptr(place), null));
    const statement = pointerIn(place);
    try {
      for (const [i, param] of params.entries()) {
        if (typeof param === "string") {
          const bytes = Buffer.from(`${param}\0`);
          this.#check(
            library.sqlite3_bind_text(statement, i + 1, ptr(bytes), bytes.length - 1, BigInt(COPIED)),
          );
        } else if (param !== null) this.#check(library.sqlite3_bind_int64(statement, i + 1, BigInt(param)));
      }
      let code = SQLITE_ROW;
      while (code === SQLITE_ROW) code = library.sqlite3_step(statement);
      if (code !== SQLITE_DONE) this.#check(code);
      return library.sqlite3_stmt_status(statement, VM_STEPS, 0);
    } finally {
      library.sqlite3_finalize(statement);
    }
  }

  get pages(): number {
    const bytes = statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0; // none before the first write
    return Math.floor(bytes / FRAME_BYTES); // beside the frames it has a short header
  }

  [Symbol.dispose](): void {
    this.#library.sqlite3_close(this.#db);
  }

  #check(code: number): void {
    if (code === 0) return;
    const message = this.#library.sqlite3_errmsg(this.#db);
    throw new Error(message === null ? `SQLite: ${code}` : new CString(message).toString());
  }
}

function textOf(text: string): Pointer {
  return ptr(Buffer.from(`${text}\0`));
}

function pointerIn(place: BigUint64Array): Pointer {
  return Number(place[0]) as Pointer; // an address has at most 48 bits
}
