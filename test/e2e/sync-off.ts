/**
 * Preloaded before the program it makes SQLite answer a commit without a flush: so that the test which looks for answers
 * that come too early can show that it would find them.
 */
import { Database } from "bun:sqlite";

const run = Database.prototype.run;
Database.prototype.run = function (this: Database, sql: string, ...rest: []) {
  return run.call(this, sql.replace("synchronous = FULL", "synchronous = OFF"), ...rest);
};
