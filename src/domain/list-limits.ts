/** Limits that the dashboard names too. Apart from limits.ts, so that its page does not have all the others. */

/** Also the end of its pages; what is older comes with the next cursor. */
export const LIST_SCANNED_MAX = 10_000;

/** The newest. */
export const LUX_TOP_SCANNED_MAX = 200_000;
