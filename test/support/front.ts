/**
 * An nginx in front of two hubs for the API tests. It stays up from test to test, while the hubs behind it start and stop
 * on the same addresses.
 */
import type { ListenSpec } from "../../src/config.ts";
import type { VariantName } from "../../src/domain/model.ts";
import { OWN_HOST } from "./keeper.ts";
import { Nginx } from "./nginx.ts";

const VARIANTS: readonly VariantName[] = ["A", "B"];
const HUBS = [0, 1] as const;
const FIRST_PORT = 19_104;

export class Front {
  readonly #nginx: Nginx;
  readonly #place: number;

  private constructor(nginx: Nginx, place: number) {
    this.#nginx = nginx;
    this.#place = place;
  }

  static async open(place: number): Promise<Front> {
    const sites = VARIANTS.map(
      (variant) => [addressOf(place, 0, variant), addressOf(place, 1, variant)] as const,
    );
    return new Front(await Nginx.start(sites), place);
  }

  /** The port that nodes call. */
  port(variant: VariantName): number {
    return this.#nginx.ports[VARIANTS.indexOf(variant)] ?? 0;
  }

  /** The listeners of each hub behind it. */
  listens(variants: readonly VariantName[]): readonly (readonly ListenSpec[])[] {
    return HUBS.map((hub) =>
      variants.map((variant) => ({
        variant,
        host: OWN_HOST,
        port: portOf(this.#place, hub, variant),
        tls: false,
      })),
    );
  }

  /** Resolves when nginx forwards again: it waits a second after all hubs have failed, as when they stop under load. */
  async lets(variants: readonly VariantName[]): Promise<void> {
    for (const variant of variants)
      while ((await fetch(`http://127.0.0.1:${this.port(variant)}/`, { keepalive: false })).status === 502)
        await Bun.sleep(50);
  }

  close(): Promise<void> {
    return this.#nginx.close();
  }
}

function portOf(place: number, hub: number, variant: VariantName): number {
  return FIRST_PORT + (place * HUBS.length + hub) * VARIANTS.length + VARIANTS.indexOf(variant);
}

const addressOf = (place: number, hub: number, variant: VariantName): string =>
  `${OWN_HOST}:${portOf(place, hub, variant)}`;

const idle: Front[] = [];
const all: Promise<Front>[] = []; // including those still opening: each has its own ports

/** An unused one. */
export async function takeFront(): Promise<Front> {
  const front = idle.pop();
  if (front) return front;
  const opening = Front.open(all.length);
  all.push(opening);
  return opening;
}

export function giveBack(front: Front): void {
  idle.push(front);
}

export async function closeFronts(): Promise<void> {
  idle.splice(0);
  await Promise.all(all.splice(0).map(async (front) => (await front).close()));
}
