/**
 * An nginx in front of two hubs for the API tests. It stays up from test to test, while the hubs behind it start and stop
 * on the same addresses.
 */
import type { ListenSpec } from "../../src/config.ts";
import type { VariantName } from "../../src/domain/model.ts";
import { must } from "../../src/lib/assert.ts";
import { OWN_HOST, freePorts } from "./keeper.ts";
import { Nginx } from "./nginx.ts";

const VARIANTS: readonly VariantName[] = ["A", "B"];
const HUBS = [0, 1] as const;

export class Front {
  readonly #nginx: Nginx;
  readonly #ports: readonly number[];

  private constructor(nginx: Nginx, ports: readonly number[]) {
    this.#nginx = nginx;
    this.#ports = ports;
  }

  static async open(): Promise<Front> {
    const ports = freePorts(HUBS.length * VARIANTS.length, OWN_HOST);
    const addressOf = (hub: number, variant: VariantName) => `${OWN_HOST}:${portOf(ports, hub, variant)}`;
    const sites = VARIANTS.map((variant) => [addressOf(0, variant), addressOf(1, variant)] as const);
    return new Front(await Nginx.start(sites), ports);
  }

  port(variant: VariantName): number {
    return this.#nginx.ports[VARIANTS.indexOf(variant)] ?? 0;
  }

  listens(variants: readonly VariantName[]): readonly (readonly ListenSpec[])[] {
    return HUBS.map((hub) =>
      variants.map((variant) => ({
        variant,
        host: OWN_HOST,
        port: portOf(this.#ports, hub, variant),
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

function portOf(ports: readonly number[], hub: number, variant: VariantName): number {
  return must(
    ports[hub * VARIANTS.length + VARIANTS.indexOf(variant)],
    "each hub has a port for each variant",
  );
}

const idle: Front[] = [];
const all: Promise<Front>[] = []; // including those still opening

export async function takeFront(): Promise<Front> {
  const front = idle.pop();
  if (front) return front;
  const opening = Front.open();
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
