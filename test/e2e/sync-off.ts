/**
 * Preloaded before the program: makes SQLite answer a commit without a flush, to prove that the test for premature
 * answers detects them.
 */
import { Database } from "bun:sqlite";

const run = Database.prototype.run;
Database.prototype.run = function (this: Database, sql: string, ...rest: []) {
  return run.call(this, sql.replace("synchronous = FULL", "synchronous = OFF"), ...rest);
};
