/**
 * Closes connections that sent half of a request's head and then nothing. Bun.serve neither tells of them nor closes them
 * within 12 seconds, and each holds a file descriptor. Only Linux tells a process which of its connections were never
 * sent a byte (TCP_INFO), so elsewhere nothing is closed.
 *
 * Must not close a connection on which a request runs, nor one of another port. Only shuts a connection down: Bun closes
 * its descriptor, else the same number could be closed twice.
 */
import { dlopen } from "bun:ffi";

const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const SHUT_RDWR = 2;
const MSG_PEEK_DONTWAIT = 0x42;
const TCP_ESTABLISHED = 1;
const TCP_CLOSE_WAIT = 8;
/** Where struct tcp_info of linux/tcp.h has its fields, in bytes; since Linux 4.6 it has them all. */
const FIELDS = { state: 0, lastDataSentMs: 44, dataSegmentsOut: 156 } as const;
const INFO_BYTES = 160;
/** Where any internet address has its port. */
const PORT_AT = 2;
const ADDRESS_BYTES = 128;
/** Below it are the standard streams. */
const FIRST_DESCRIPTOR = 3;

type Sockets = {
  /** Since the connection was made, in ms; null for what is no connection, or was sent something. */
  silentMs(descriptor: number): number | null;
  /** Null if the descriptor has none. */
  localPort(descriptor: number): number | null;
  peerPort(descriptor: number): number | null;
  /** Whether bytes came that Bun has not read yet. */
  hasUnread(descriptor: number): boolean;
  shutDown(descriptor: number): void;
};

let sockets: Sockets | null = null;

type Wanted = {
  /** Of the listening socket. */
  readonly port: number;
  /** All descriptors are below it. */
  readonly limit: number;
  /** The ports of the other ends of the connections on which a request runs. */
  readonly busy: () => ReadonlySet<number>;
  /** At most so many are closed, the oldest first. */
  readonly count: number;
};

/** Closes stalled connections. Returns how many. */
export function closeStalled({ port, limit, busy, count }: Wanted): number {
  if (process.platform !== "linux" || !Number.isFinite(limit)) return 0;
  try {
    sockets ??= openSockets();
  } catch {
    return 0; // no descriptor is free for the library: the next look has one; or there is no such library
  }
  const { silentMs, localPort, peerPort, hasUnread, shutDown } = sockets;
  const stalled: { descriptor: number; ms: number }[] = [];
  let running: ReadonlySet<number> | null = null;
  for (let descriptor = FIRST_DESCRIPTOR; descriptor < limit; descriptor++) {
    const ms = silentMs(descriptor);
    if (ms === null || localPort(descriptor) !== port) continue;
    const peer = peerPort(descriptor);
    running ??= busy();
    if (peer === null || running.has(peer) || hasUnread(descriptor)) continue;
    stalled.push({ descriptor, ms });
  }
  const oldest = stalled.toSorted((one, other) => other.ms - one.ms).slice(0, count);
  for (const { descriptor } of oldest) shutDown(descriptor);
  return oldest.length;
}

/** The system calls. @throws when the library cannot be loaded now */
function openSockets(): Sockets {
  // Musl knows the name too, as its own.
  const { symbols } = dlopen("libc.so.6", {
    getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
    getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    getpeername: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    recv: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
    shutdown: { args: ["i32", "i32"], returns: "i32" },
  });
  const infoBytes = new Uint8Array(INFO_BYTES);
  const info = new DataView(infoBytes.buffer);
  const address = new Uint8Array(ADDRESS_BYTES);
  const addressView = new DataView(address.buffer);
  const length = new Uint32Array(1);
  const byte = new Uint8Array(1);
  const isLittleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
  const portBy =
    (call: (descriptor: number, into: Uint8Array, bytes: Uint32Array) => number) => (descriptor: number) => {
      length[0] = ADDRESS_BYTES;
      return call(descriptor, address, length) === 0 ? addressView.getUint16(PORT_AT) : null;
    };
  return {
    silentMs(descriptor) {
      length[0] = INFO_BYTES;
      if (symbols.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, infoBytes, length) !== 0) return null;
      const state = info.getUint8(FIELDS.state);
      if ((length[0] ?? 0) < INFO_BYTES || (state !== TCP_ESTABLISHED && state !== TCP_CLOSE_WAIT))
        return null;
      const isSilent = info.getUint32(FIELDS.dataSegmentsOut, isLittleEndian) === 0;
      return isSilent ? info.getUint32(FIELDS.lastDataSentMs, isLittleEndian) : null;
    },
    localPort: portBy(symbols.getsockname),
    peerPort: portBy(symbols.getpeername),
    hasUnread: (descriptor) => Number(symbols.recv(descriptor, byte, 1, MSG_PEEK_DONTWAIT)) > 0,
    shutDown: (descriptor) => void symbols.shutdown(descriptor, SHUT_RDWR),
  };
}
