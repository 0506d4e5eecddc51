/** The processor time of this thread, which browsers do not tell. */

/** In milliseconds. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
