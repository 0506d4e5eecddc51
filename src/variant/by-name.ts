/** The variants by name. */
import type { VariantName } from "../domain/model.ts";
import { VARIANT_A } from "./a.ts";
import { VARIANT_B } from "./b.ts";
import type { Variant } from "./variant.ts";

export const VARIANTS: Readonly<Record<VariantName, Variant>> = { A: VARIANT_A, B: VARIANT_B };
