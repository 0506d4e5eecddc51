/**
 * The schema of a database: what a new one gets, and the steps from the schemas of published versions to it. Where the
 * engines differ says store/sqlite/schema.ts and store/postgres/schema.ts. Must not: keep a step from a schema that no
 * published version had.
 */
import { type Dialect, ddlOf } from "./table.ts";
import { TABLES, TASK_ROWS } from "./tables.ts";

export type Schema = {
  readonly version: number;
  readonly create: () => string;
  /** By the number that a database has. */
  readonly steps: Readonly<Record<number, () => string>>;
};

/** The tables of both engines, and the rows that every database has. */
export function createTables(dialect: Dialect, newIdentity: string): string {
  const statements = [
    ...TABLES.flatMap((table) => ddlOf(table, dialect)),
    TASK_ROWS,
    `INSERT INTO identity VALUES (1, ${newIdentity})`,
    "INSERT INTO task_totals VALUES (1, 0, 0, 0, 0)",
    "INSERT INTO file_totals VALUES (1, 0, 0)",
    "INSERT INTO fencing VALUES (1, 0)",
  ];
  return statements.map((statement) => `${statement};\n`).join("");
}

/** The traces of tasks, which databases of the last build before the first release do not have. */
export function addTraces(): string {
  const columns = ["traceparent", "tracestate"].map(
    (name) => `ALTER TABLE task_features ADD COLUMN ${name} TEXT;`,
  );
  return `DROP VIEW task_rows; ${columns.join(" ")} ${TASK_ROWS};`;
}

export type Age = "none" | "newest" | "older" | "newer" | "unpublished";

export function ageOf({ version, steps }: Schema, found: number): Age {
  if (found === 0) return "none";
  if (found === version) return "newest";
  if (found > version) return "newer";
  return steps[found] === undefined ? "unpublished" : "older";
}

export function refusalOf({ version }: Schema, found: number): string {
  return found > version
    ? `The database is of a newer luxhub (schema ${found}, this one knows ${version}). Run that one.`
    : `The database is of a luxhub that was never published (schema ${found}). Start a build that has schema ${version} and still migrates it, then this one (docs/versioning.md).`;
}

/** "" for a database of that version. @throws {Error} one line: refusalOf() */
export function stepFrom(schema: Schema, found: number): string {
  const age = ageOf(schema, found);
  if (age === "newest") return "";
  const step = age === "none" ? schema.create : schema.steps[found];
  if (step === undefined) throw new Error(refusalOf(schema, found));
  return step();
}
