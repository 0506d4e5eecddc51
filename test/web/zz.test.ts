import { afterAll, test } from "bun:test";
import { startHub } from "../support/hub.ts";
import { ACTIONS } from "./actions.ts";
import { NARROW, WIDE, closeBrowser } from "./chromium.ts";
afterAll(closeBrowser);
const wanted =
  /runs again|bound to a node|what waits is changed|takes long|events come live|rows are selected|tasks are found by|groups are found|costs are shown|keys are added|nodes are found|operators do most/;
for (const [variant, size] of [
  ["B", WIDE],
  ["B", NARROW],
] as const)
  for (const { name, run } of ACTIONS)
    if (wanted.test(name))
      test(`${variant} ${size.width} ${name}`, async () => {
        await using hub = await startHub();
        await run({ hub, variant, size });
      }, 60000);
