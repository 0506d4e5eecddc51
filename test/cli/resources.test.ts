/** What a machine has: GPUs as nvidia-smi prints them, and its odd outputs. */
import { expect, test } from "bun:test";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { detectResources, gpusOf } from "../../src/cli/resources.ts";
import { newDataDir } from "../support/hub.ts";

test.each([
  ["one GPU", "24576\n", { gpu: 1, vram_gib: 24 }],
  ["several GPUs: their memory together", "24576\n24576\n16384\n", { gpu: 3, vram_gib: 64 }],
  ["a part of a GiB does not count", "15360\n1023\n", { gpu: 2, vram_gib: 15 }],
  ["spaces and the line ends of Windows", "  8192 \r\n 8192\r\n", { gpu: 2, vram_gib: 16 }],
  [
    "a GPU whose memory is unknown does not count",
    "24576\n[N/A]\n[Not Supported]\n",
    { gpu: 1, vram_gib: 24 },
  ],
  ["none", "", {}],
  ["a sentence that there is none", "No devices were found\n", {}],
  [
    "a driver that does not answer",
    "NVIDIA-SMI has failed because it couldn't communicate with driver 535.\n",
    {},
  ],
  ["units that were not asked for", "24576 MiB\n", {}],
])("nvidia-smi: %s", (_, output, expected) => {
  expect(gpusOf(output)).toEqual(expected);
});

const DETECT = `
  import { detectResources } from ${JSON.stringify(join(import.meta.dir, "../../src/cli/resources.ts"))};
  console.log(JSON.stringify(detectResources()));`;

/** With an nvidia-smi that is this shell script; null: without one. */
function detected(script: string | null): unknown {
  const folder = newDataDir();
  try {
    if (script !== null) {
      writeFileSync(join(folder, "nvidia-smi"), `#!/bin/sh\n${script}\n`);
      chmodSync(join(folder, "nvidia-smi"), 0o755);
    }
    const { stdout } = Bun.spawnSync([process.execPath, "-e", DETECT], { env: { PATH: folder } });
    return JSON.parse(stdout.toString());
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the machine is asked: cpu and memory_gib always, GPUs if nvidia-smi succeeds", () => {
  const { cpu = 0, memory_gib = 0 } = detectResources();
  expect(cpu).toBeGreaterThan(0);
  expect(detected(null)).toEqual({ cpu, memory_gib });
  const asked = '[ "$*" = "--query-gpu=memory.total --format=csv,noheader,nounits" ] || exit 2';
  expect(detected(`${asked}\necho 24576\necho 24576`)).toEqual({
    cpu,
    memory_gib,
    gpu: 2,
    vram_gib: 48,
  });
  // What it printed before it failed is not believed.
  expect(detected("echo 24576\necho 'Unable to determine the device handle' >&2\nexit 9")).toEqual({
    cpu,
    memory_gib,
  });
  expect(detected("echo 'No devices were found'")).toEqual({ cpu, memory_gib });
});
