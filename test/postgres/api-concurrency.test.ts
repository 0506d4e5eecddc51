/** One part of the API tests on PostgreSQL: see api.ts. */
import { runOnPostgres } from "./api.ts";

await runOnPostgres("concurrency");
