/** This machine's address in a private network, to which the program sends webhooks if --webhook-allow names it. */
import { networkInterfaces } from "node:os";
import { addressRefusal } from "../../src/lib/address-policy.ts";
import { blockListOf, parseNetwork } from "../../src/lib/ip.ts";

/** An IPv4 address that can be called once it is allowed; null: this machine has none. */
export function ownAddress(): string | null {
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const found = addresses.find(({ address, family }) => {
    const network = parseNetwork(address);
    return family === "IPv4" && network !== null && addressRefusal(address, blockListOf([network])) === null;
  });
  return found?.address ?? null;
}
