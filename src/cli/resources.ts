/** Resources on the command line: `gpu=2,vram_gib=24`; and what a machine has. */
import { totalmem, availableParallelism } from "node:os";

type Amounts = Readonly<Record<string, number>>;

/** `name=amount` is a resource, anything else a word. null: an amount is no number. */
export function parseRequirements(
  list: string,
): { readonly words: readonly string[]; readonly amounts: Amounts } | null {
  const words: string[] = [];
  const amounts: Record<string, number> = {};
  for (const item of list.split(",").map((part) => part.trim())) {
    if (item === "") continue;
    const equals = item.indexOf("=");
    if (equals === -1) words.push(item);
    else {
      const amount = item.slice(equals + 1).trim();
      if (!/^\d{1,10}(?:\.\d{1,9})?$/.test(amount)) return null;
      amounts[item.slice(0, equals).trim()] = Number(amount);
    }
  }
  return { words, amounts };
}

const MIB_PER_GIB = 1_024;
const BYTES_PER_GIB = 2 ** 30;
const DETECTION_MAX_MS = 10_000;

export function detectResources(): Amounts {
  const memory_gib = Math.floor(totalmem() / BYTES_PER_GIB);
  return { cpu: availableParallelism(), memory_gib, ...detectGpus() };
}

function detectGpus(): Amounts {
  const command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"];
  if (Bun.which(command[0] ?? "") === null) return {};
  const { success, stdout } = Bun.spawnSync(command, { timeout: DETECTION_MAX_MS, stderr: "ignore" });
  return success ? gpusOf(stdout.toString()) : {};
}

/** A line for each GPU with its memory in MiB. */
export function gpusOf(output: string): Amounts {
  const sizes = output.split("\n").flatMap((line) => (/^\s*\d+\s*$/.test(line) ? [Number(line)] : []));
  if (sizes.length === 0) return {};
  const mib = sizes.reduce((sum, size) => sum + size, 0);
  return { gpu: sizes.length, vram_gib: Math.floor(mib / MIB_PER_GIB) };
}
