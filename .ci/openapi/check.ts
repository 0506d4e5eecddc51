/**
 * Checks the OpenAPI documents with tools of others: Redocly's linter accepts them by its strictest rules (structure,
 * references, examples against their schemas), and the types that openapi-typescript generates make a client, client.ts,
 * that compiles.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import openapiTS, { astToString } from "openapi-typescript";

const HERE = import.meta.dir;
const config = await createConfig({ extends: ["recommended-strict"] });
let faults = 0;

for (const variant of ["A", "B"]) {
  const printed = Bun.spawnSync(["bun", join(HERE, "../../src/main.ts"), "openapi", "--variant", variant]);
  const source = printed.stdout.toString();
  for (const problem of await lintFromString({ source, absoluteRef: `${variant}.json`, config })) {
    faults += 1;
    console.log(`${variant}: ${problem.ruleId} at ${problem.location[0]?.pointer}: ${problem.message}`);
  }
  mkdirSync(join(HERE, "generated"), { recursive: true });
  writeFileSync(join(HERE, `generated/${variant}.ts`), astToString(await openapiTS(JSON.parse(source))));
}

const compiled = Bun.spawnSync(["bun", "node_modules/typescript/bin/tsc", "--project", "."], { cwd: HERE });
console.log(`${faults} problems found by the linter`);
console.log(compiled.stdout.toString() || "the generated client compiles");
process.exitCode = faults === 0 && compiled.exitCode === 0 ? 0 : 1;
