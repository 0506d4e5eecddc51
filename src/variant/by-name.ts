/** The variants by name. */
import type { JoinedThrough, VariantName } from "../domain/model.ts";
import { VARIANT_A } from "./a.ts";
import { VARIANT_B } from "./b.ts";
import { MCP_INTERVALS } from "./mcp.ts";
import type { Variant } from "./variant.ts";

export const VARIANTS: Readonly<Record<VariantName, Variant>> = { A: VARIANT_A, B: VARIANT_B };

export const INTERVALS: Readonly<
  Record<JoinedThrough, Pick<Variant, "heartbeatIntervalMs" | "offlineAfterMs">>
> = { ...VARIANTS, MCP: MCP_INTERVALS };
