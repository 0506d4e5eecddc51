/**
 * The blocks of a tar archive (POSIX ustar), as far as plain files need them: heads to and from bytes.
 * Must not: read or write anything; where the bytes come from and go to is the caller's.
 */

export const TAR_BLOCK_BYTES = 512;

/** A plain file in an archive. */
export type TarHead = {
  /** ASCII, at most 100 characters. */
  readonly name: string;
  readonly size: number;
  /** Epoch milliseconds; kept to the second. */
  readonly modifiedAt: number;
};

const NAME_MAX_CHARS = 100;
const MODE = 0o600;
const PLAIN_FILE = "0";
/** Up to here a size is written in octal digits; above, in binary with the first bit set, as GNU and BSD do. */
const OCTAL_SIZE_MAX = 8 ** 11 - 1;

const SIZE = { at: 124, bytes: 12 };
const CHECKSUM = { at: 148, bytes: 8 };
const TYPE_AT = 156;
const MAGIC_AT = 257;

/** The block that stands before a file's bytes. */
export function encodeTarHead({ name, size, modifiedAt }: TarHead): Uint8Array {
  if (name.length > NAME_MAX_CHARS || !/^[\x21-\x7e]+$/.test(name))
    throw new Error(`no name for tar: ${name}`);
  const block = new Uint8Array(TAR_BLOCK_BYTES);
  const put = (text: string, at: number): void => void new TextEncoder().encodeInto(text, block.subarray(at));
  const octal = (value: number, bytes: number): string => value.toString(8).padStart(bytes - 1, "0");
  put(name, 0);
  put(octal(MODE, 8), 100);
  put(octal(0, 8), 108); // owner and group: whoever unpacks it
  put(octal(0, 8), 116);
  if (size <= OCTAL_SIZE_MAX) put(octal(size, SIZE.bytes), SIZE.at);
  else putBinary(block, size);
  put(octal(Math.floor(modifiedAt / 1_000), 12), 136);
  put(PLAIN_FILE, TYPE_AT);
  put("ustar\0" + "00", MAGIC_AT);
  put(`${octal(checksumOf(block), 7)}\0 `, CHECKSUM.at);
  return block;
}

/** What a head says; null for the empty block that ends an archive. @throws {Error} when it is no plain file's head */
export function decodeTarHead(block: Uint8Array): TarHead | null {
  if (block.every((byte) => byte === 0)) return null;
  const text = (at: number, bytes: number): string =>
    new TextDecoder("latin1")
      .decode(block.subarray(at, at + bytes))
      .replace(/\0[\s\S]*$/, "")
      .trim();
  if (Number.parseInt(text(CHECKSUM.at, CHECKSUM.bytes), 8) !== checksumOf(block))
    throw new Error("a head is damaged");
  if (text(TYPE_AT, 1) !== PLAIN_FILE) throw new Error("it holds something else than plain files");
  const size = block[SIZE.at] === 0x80 ? binarySize(block) : Number.parseInt(text(SIZE.at, SIZE.bytes), 8);
  if (!Number.isSafeInteger(size) || size < 0) throw new Error("a head is damaged");
  return { name: text(0, NAME_MAX_CHARS), size, modifiedAt: Number.parseInt(text(136, 12), 8) * 1_000 };
}

/** How many bytes follow a file of this size up to the next block. */
export function tarPadding(size: number): number {
  return (TAR_BLOCK_BYTES - (size % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES;
}

/** The sum of all bytes, those of the checksum itself taken as blanks. */
function checksumOf(block: Uint8Array): number {
  const summed = (sum: number, byte: number, at: number): number =>
    sum + (at >= CHECKSUM.at && at < CHECKSUM.at + CHECKSUM.bytes ? 0x20 : byte);
  return block.reduce(summed, 0);
}

function putBinary(block: Uint8Array, size: number): void {
  const view = new DataView(block.buffer, SIZE.at, SIZE.bytes);
  view.setUint8(0, 0x80);
  view.setBigUint64(4, BigInt(size));
}

function binarySize(block: Uint8Array): number {
  return Number(new DataView(block.buffer, block.byteOffset + SIZE.at, SIZE.bytes).getBigUint64(4));
}
