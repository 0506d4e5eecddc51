/** Limits that the dashboard names too. Apart from limits.ts, so that its page does not have all the others. */

/** Tasks that one call of a filtered list examines; what is older comes with the next cursor. Also the end of its pages. */
export const LIST_SCANNED_MAX = 10_000;

/** Entries of the ledger that lux/top examines, the newest. */
export const LUX_TOP_SCANNED_MAX = 200_000;
