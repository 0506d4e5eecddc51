/** Prints in one line which suites this machine skips because a server is missing, and how to run them. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { NGINX_MISSING } from "./support/nginx.ts";
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from "./support/postgres.ts";
import { REDIS_MISSING, withoutRedis } from "./support/redis.ts";
import { CHROMIUM_MISSING } from "./web/chromium.ts";

type Want = { readonly missing: boolean; readonly install: string; readonly suites: readonly string[] };

const WANTS: readonly Want[] = [
  {
    missing: POSTGRES_MISSING !== null,
    install: "postgresql",
    suites: ["test/postgres", "test/contract on PostgreSQL"],
  },
  {
    missing: POSTGRES_PROGRAMS === null,
    install: "postgresql",
    suites: ["test/postgres/outage.test.ts", "test/e2e/fleet.test.ts"],
  },
  {
    missing: REDIS_MISSING !== null,
    install: "redis-server",
    suites: ["test/api/messages-on-redis.test.ts", "test/contract/mail.test.ts on Redis"],
  },
  {
    missing: withoutRedis(true),
    install: "redis-server",
    suites: ["test/mail on Redis", "test/e2e/redis.test.ts", "test/e2e/fleet.test.ts"],
  },
  {
    missing: NGINX_MISSING !== null || REDIS_MISSING !== null,
    install: NGINX_MISSING === null ? "redis-server" : "nginx",
    suites: ["test/postgres/api-*.test.ts through nginx over two hubs", "test/e2e/fleet.test.ts"],
  },
  {
    missing: CHROMIUM_MISSING !== null,
    install: "chromium",
    suites: ["test/web in a browser", "test/manual in a browser"],
  },
];

const wanted = WANTS.filter(({ missing }) => missing);
if (wanted.length > 0) {
  const suites = [...new Set(wanted.flatMap((want) => want.suites))];
  const install = [...new Set(wanted.map((want) => want.install))];
  console.warn(
    `Left out: ${suites.join(", ")}. To run them: apt-get install ${install.join(" ")} (README: Test).`,
  );
}

test("the servers that suites need are there", () => {
  const paths = WANTS.flatMap(({ suites }) => suites).map((suite) => suite.split(" ")[0] ?? "");
  for (const path of paths.filter((one) => !one.includes("*")))
    expect([path, existsSync(join(import.meta.dir, "..", path))]).toEqual([path, true]);
});
