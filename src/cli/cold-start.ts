/**
 * Imported before anything else: while the hub starts, the JIT hardly compiles. What runs once is not worth it, and the
 * compiler at work would cost 4 MiB of memory for the life of the process. `luxhub serve` lifts this when it listens.
 */
const RELUCTANCE = 50;

Bun.unsafe.setJITPolicy(RELUCTANCE);

/** From here on what is hot is compiled as usual. */
export function warmUp(): void {
  Bun.unsafe.setJITPolicy(1);
}
