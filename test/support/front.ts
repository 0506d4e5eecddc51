/**
 * The way to a hub of the API's tests that is really two behind an nginx: the nginx goes on from test to test, while the
 * hubs behind it come and go on the same addresses.
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

  /** Where nodes call. */
  port(variant: VariantName): number {
    return this.#nginx.ports[VARIANTS.indexOf(variant)] ?? 0;
  }

  /** What each of the hubs behind it listens on. */
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

  /** Resolves when it lets requests through: a second after all hubs had failed it, as when they end under load. */
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
const all: Promise<Front>[] = []; // those that are being opened too: each has its place

/** One that nobody uses now. */
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
