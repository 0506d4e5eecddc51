/**
 * A QR code of a text (ISO/IEC 18004): bytes, error correction level M, versions 1 to 15.
 * Must not: draw; the caller does.
 */
import { must } from "./assert.ts";

/** By version, from 1, at level M. */
const CHECK_BYTES = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24];
const BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10];
/** The mode of bytes, and its width with a terminator. */
const BYTE_MODE = 0b0100;
const WITHIN = "an index is within its table";
/** Fill up what the text leaves, in turns. */
const PADS = [0xec, 0x11];

/** Row by row: whether a module is dark. */
export type QrCode = readonly (readonly boolean[])[];

/** Null: longer than the largest version holds, 412 bytes. */
export function qrCode(text: string): QrCode | null {
  const bytes = new TextEncoder().encode(text);
  for (let version = 1; version <= BLOCKS.length; version++) {
    const capacity = dataBytes(version);
    if (bytes.length + lengthBytes(version) + 1 > capacity) continue;
    return best(version, withChecks(dataOf(bytes, version, capacity), version));
  }
  return null;
}

/** 4 bits of mode, the length, and 4 bits of terminator. */
function lengthBytes(version: number): number {
  return version < 10 ? 1 : 2;
}

function dataBytes(version: number): number {
  return Math.floor(modulesForData(version) / 8) - of(CHECK_BYTES, version) * of(BLOCKS, version);
}

function of(table: readonly number[], version: number): number {
  return must(table[version - 1], WITHIN);
}

/** Modules that no pattern takes. */
function modulesForData(version: number): number {
  const grid = frame(version);
  return grid.flat().filter((module) => module === null).length;
}

// ---- Codewords

function dataOf(bytes: Uint8Array, version: number, capacity: number): readonly number[] {
  const digits = [BYTE_MODE.toString(2).padStart(4, "0")];
  digits.push(bytes.length.toString(2).padStart(8 * lengthBytes(version), "0"));
  for (const byte of bytes) digits.push(byte.toString(2).padStart(8, "0"));
  digits.push("0000");
  const codewords = must(digits.join("").match(/.{8}/g), "the header is longer than a byte").map((octet) =>
    parseInt(octet, 2),
  );
  for (let i = 0; codewords.length < capacity; i++) codewords.push(must(PADS[i % 2], WITHIN));
  return codewords;
}

/** Cuts the data into blocks, adds their checks, and interleaves them. */
function withChecks(data: readonly number[], version: number): readonly number[] {
  const count = of(BLOCKS, version);
  const short = Math.floor(data.length / count);
  /** So many blocks at the end are longer by one. */
  const long = data.length % count;
  const blocks: number[][] = [];
  for (let i = 0, offset = 0; i < count; i++) {
    const length = short + (i >= count - long ? 1 : 0);
    blocks.push(data.slice(offset, offset + length));
    offset += length;
  }
  const checks = blocks.map((block) => checksOf(block, of(CHECK_BYTES, version)));
  return [...interleaved(blocks), ...interleaved(checks)];
}

function interleaved(rows: readonly (readonly number[])[]): readonly number[] {
  const longest = Math.max(...rows.map(({ length }) => length));
  return Array.from({ length: longest }, (_, i) => rows.flatMap((row) => row[i] ?? [])).flat();
}

// ---- Reed-Solomon, in the field of 256 elements with x^8 + x^4 + x^3 + x^2 + 1

const POWERS: number[] = [];
const LOGS: number[] = [];
for (let i = 0, power = 1; i < 255; i++) {
  POWERS[i] = power;
  LOGS[power] = i;
  power = power < 128 ? power * 2 : (power * 2) ^ 0x11d;
}

function times(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : must(POWERS[(must(LOGS[a], WITHIN) + must(LOGS[b], WITHIN)) % 255], WITHIN);
}

/** The remainder of the block, as a polynomial, by the generator: the product of (x - 2^i). */
function checksOf(block: readonly number[], count: number): readonly number[] {
  let generator = [1];
  for (let i = 0; i < count; i++) {
    const root = must(POWERS[i], WITHIN);
    const [old, shifted] = [
      [0, ...generator],
      [...generator, 0],
    ];
    generator = shifted.map((factor, n) => factor ^ times(must(old[n], WITHIN), root));
  }
  const coefficients = [...block, ...Array.from({ length: count }, () => 0)];
  for (let i = 0; i < block.length; i++) {
    const lead = must(coefficients[i], WITHIN);
    generator.forEach(
      (factor, n) => (coefficients[i + n] = must(coefficients[i + n], WITHIN) ^ times(factor, lead)),
    );
  }
  return coefficients.slice(block.length);
}

// ---- Modules

/** Null: free for data. */
type Grid = (boolean | null)[][];

function sizeOf(version: number): number {
  return 17 + 4 * version;
}

/** With room for the format. */
function frame(version: number): Grid {
  const size = sizeOf(version);
  const grid: Grid = Array.from({ length: size }, () => Array.from({ length: size }, () => null));
  const set = (row: number, column: number, isDark: boolean): void => {
    const line = grid[row];
    if (line !== undefined && column >= 0 && column < size) line[column] = isDark;
  };
  for (let i = 0; i < size; i++) {
    set(6, i, i % 2 === 0);
    set(i, 6, i % 2 === 0);
  }
  const middles = alignments(version);
  const last = middles.length - 1;
  middles.forEach((row, i) =>
    middles.forEach((column, j) => {
      const isCorner = (i === 0 && j === 0) || (i === 0 && j === last) || (i === last && j === 0);
      if (!isCorner) square(set, row, column, 2, (ring) => ring !== 1);
    }),
  );
  for (const [row, column] of [
    [3, 3],
    [3, size - 4],
    [size - 4, 3],
  ] as const)
    square(set, row, column, 4, (ring) => ring !== 2 && ring !== 4);
  for (const [row, column] of formatPlaces(size).flat()) set(row, column, false);
  set(size - 8, 8, true);
  if (version >= 7) {
    const bits = (version << 12) | remainder(version, 12, 0x1f25);
    for (let i = 0; i < 18; i++) {
      const [far, near] = [size - 11 + (i % 3), Math.floor(i / 3)];
      set(far, near, bit(bits, i));
      set(near, far, bit(bits, i));
    }
  }
  return grid;
}

function square(
  set: (row: number, column: number, isDark: boolean) => void,
  row: number,
  column: number,
  reach: number,
  isDark: (ring: number) => boolean,
): void {
  for (let y = -reach; y <= reach; y++)
    for (let x = -reach; x <= reach; x++)
      if (row + y >= 0) set(row + y, column + x, isDark(Math.max(Math.abs(x), Math.abs(y))));
}

/** Rows, and columns, of their middles. */
function alignments(version: number): readonly number[] {
  if (version === 1) return [];
  const gaps = Math.floor(version / 7) + 1;
  const end = sizeOf(version) - 7;
  const step = Math.ceil((end - 6) / gaps / 2) * 2;
  return [6, ...Array.from({ length: gaps }, (_, i) => end - (gaps - 1 - i) * step)];
}

type Place = readonly [row: number, column: number];

/** From the lowest of 15 bits: around the first corner, and by the two others. */
function formatPlaces(size: number): readonly [readonly Place[], readonly Place[]] {
  const skip = (i: number): number => (i < 6 ? i : i + 1); // the timing pattern
  const around = Array.from({ length: 15 }, (_, i): Place => {
    if (i < 8) return [skip(i), 8];
    return [8, i === 8 ? 7 : 14 - i];
  });
  const apart = Array.from({ length: 15 }, (_, i): Place => (i < 8 ? [8, size - 1 - i] : [size - 15 + i, 8]));
  return [around, apart];
}

function bit(bits: number, i: number): boolean {
  return ((bits >>> i) & 1) === 1;
}

/** Of `value` times 2^degree by the generator, with coefficients of one bit. */
function remainder(value: number, degree: number, generator: number): number {
  let dividend = value << degree;
  for (let i = 31; i >= degree; i--) if (bit(dividend, i)) dividend ^= generator << (i - degree);
  return dividend;
}

const MASKS: readonly ((row: number, column: number) => boolean)[] = [
  (y, x) => (y + x) % 2 === 0,
  (y) => y % 2 === 0,
  (_, x) => x % 3 === 0,
  (y, x) => (y + x) % 3 === 0,
  (y, x) => (Math.floor(y / 2) + Math.floor(x / 3)) % 2 === 0,
  (y, x) => ((y * x) % 2) + ((y * x) % 3) === 0,
  (y, x) => (((y * x) % 2) + ((y * x) % 3)) % 2 === 0,
  (y, x) => (((y + x) % 2) + ((y * x) % 3)) % 2 === 0,
];

/** The mask with the fewest equal neighbours: large areas of one colour are hard to scan. */
function best(version: number, codewords: readonly number[]): QrCode {
  const grids = MASKS.map((_, mask) => filled(version, codewords, mask));
  return must(grids.toSorted((a, b) => equalNeighbours(a) - equalNeighbours(b))[0], WITHIN);
}

function equalNeighbours(grid: QrCode): number {
  let count = 0;
  grid.forEach((row, y) =>
    row.forEach((module, x) => {
      if (module === row[x + 1]) count++;
      if (module === grid[y + 1]?.[x]) count++;
    }),
  );
  return count;
}

/** Level M has the bits 00. */
function filled(version: number, codewords: readonly number[], mask: number): QrCode {
  const size = sizeOf(version);
  const grid = frame(version);
  const isMasked = must(MASKS[mask], WITHIN);
  let bitIndex = 0;
  // Two columns at a time from the right, up and down in turns, without the timing column.
  for (let right = size - 1, isUp = true; right > 0; right -= right === 8 ? 3 : 2, isUp = !isUp)
    for (let i = 0; i < size; i++) {
      const y = isUp ? size - 1 - i : i;
      const row = must(grid[y], WITHIN);
      for (const x of [right, right - 1]) {
        if (row[x] !== null) continue;
        const byte = codewords[bitIndex >> 3] ?? 0;
        row[x] = bit(byte, 7 - (bitIndex & 7)) !== isMasked(y, x);
        bitIndex++;
      }
    }
  const format = ((mask << 10) | remainder(mask, 10, 0x537)) ^ 0x5412;
  for (const places of formatPlaces(size))
    places.forEach(([y, x], i) => (must(grid[y], WITHIN)[x] = bit(format, i)));
  return grid.map((row) => row.map(Boolean));
}
