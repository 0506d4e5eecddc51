/** A part of the tests of the API, on PostgreSQL: see api.ts. */
import { runOnPostgres } from "./api.ts";

await runOnPostgres("alone");
