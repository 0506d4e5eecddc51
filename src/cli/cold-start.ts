/**
 * Imported first: makes the JIT reluctant while the hub starts, because code that runs once is not worth compiling.
 * service/memory-saver.ts lifts this when there is work to do. The executable is built with the same policy, which
 * holds until this file runs.
 */
import { QUIET_JIT_RELUCTANCE } from "../domain/limits.ts";

Bun.unsafe.setJITPolicy(QUIET_JIT_RELUCTANCE);
