/**
 * Moves the wall clock of the running program, by libfaketime. The monotonic clock does not move, just as NTP and
 * operators do not move it.
 */
import { existsSync, writeFileSync } from "node:fs";
import { type Hub, type TempDir, until } from "./program.ts";

const LIBRARY = ["x86_64", "aarch64"]
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

/** Why there can be none; null when there can. */
export const NO_SHIFTED_CLOCK =
  LIBRARY === undefined ? "there is no libfaketime (apt-get install libfaketime)" : null;

export class ShiftedClock {
  readonly #path: string;
  #shiftSeconds = 0;
  #jumps = 0;

  constructor(dir: TempDir) {
    this.#path = dir.join("clock-offset");
    this.#write();
  }

  /** The environment for the program that is to live by this clock. */
  get env(): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: LIBRARY ?? "",
      FAKETIME_TIMESTAMP_FILE: this.#path,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
  }

  now(): number {
    return Date.now() + this.#shiftSeconds * 1_000;
  }

  /** Moves the clock to so far from the real time, and waits until the hub has noticed. */
  async shiftTo(hub: Hub, seconds: number): Promise<void> {
    this.set(seconds);
    const noticed = ++this.#jumps;
    await until(() => hub.program.stdout.split("the clock jumped").length > noticed);
  }

  /** Moves the clock to so far from the real time. */
  set(seconds: number): void {
    this.#shiftSeconds = seconds;
    this.#write();
  }

  #write(): void {
    writeFileSync(this.#path, `${this.#shiftSeconds < 0 ? "" : "+"}${this.#shiftSeconds}`);
  }
}
