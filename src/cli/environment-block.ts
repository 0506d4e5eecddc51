/**
 * The environment with which this process began. On Linux the kernel shows it in /proc/PID/environ to all processes of
 * the same user, and a change of `process.env` does not alter it.
 */
import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";

/** proc_pid_stat(5): env_start and env_end, counted from the third field. */
const ENV_START = 47;
const ENV_END = 48;

/**
 * Overwrites the values of variables there with zero bytes. `process.env` keeps them. Returns false where the system
 * does not allow it.
 */
export function eraseFromEnvironmentBlock(isErased: (name: string) => boolean): boolean {
  let memory: number | null = null;
  try {
    const stat = readFileSync("/proc/self/stat", "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [start, end] = [Number(fields[ENV_START]), Number(fields[ENV_END])];
    memory = openSync("/proc/self/mem", "r+");
    const block = Buffer.alloc(end - start);
    readSync(memory, block, 0, block.length, start);
    for (let offset = 0; offset < block.length;) {
      const next = block.indexOf(0, offset) + 1 || block.length + 1;
      const [name = ""] = block.toString("latin1", offset, next - 1).split("=", 1);
      if (isErased(name)) block.fill(0, offset + name.length + 1, next - 1);
      offset = next;
    }
    return writeSync(memory, block, 0, block.length, start) === block.length;
  } catch {
    return false; // no Linux, or a system that forbids it
  } finally {
    if (memory !== null) closeSync(memory);
  }
}
