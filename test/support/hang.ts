/**
 * The one deadline for whatever a test waits for. It only turns a hang into a failure that names its cause: no correct
 * run reaches it, however slow the machine. It must never measure how soon something happens.
 */
export const HANG_MS = 90_000;
