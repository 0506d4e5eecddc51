/**
 * Compares two costs within one run, so that neither the machine's speed nor its load decides. Other load only adds to a
 * measurement, so the minimum of several is close to the true cost; alternating exposes both to the same load.
 */

type Measure = () => number | Promise<number>;

/** How many times as much `other` costs as `base`; each is measured `rounds` times, in turns. */
export async function costRatio(base: Measure, other: Measure, rounds = 5): Promise<number> {
  let [leastBase, leastOther] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < rounds; round++) {
    leastBase = Math.min(leastBase, await base());
    leastOther = Math.min(leastOther, await other());
  }
  return leastOther / leastBase;
}

/**
 * Processor time that this process spends until `work` is done, in milliseconds: what other processes do does not
 * count.
 */
export async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
