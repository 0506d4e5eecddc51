/**
 * What Bun.serve does not offer: closes connections without a whole request (half of a head, a TLS handshake alone),
 * which Bun keeps for 12 seconds, and cuts off a response that Bun sends from a file. By system calls through bun:ffi,
 * on Linux only.
 *
 * Must not close a connection on which a request runs, nor one of another port. Only shuts a connection down: Bun closes
 * its descriptor, else the same number could be closed twice.
 */
import type { Server } from "bun";
import { readFileSync } from "node:fs";
import { must } from "../lib/assert.ts";
import { canonicalIp } from "../lib/ip.ts";

const IPPROTO_TCP = 6;
const TCP_INFO = 11;
const SHUT_RDWR = 2;
const MSG_PEEK_DONTWAIT = 0x42;
const TCP_ESTABLISHED = 1;
const TCP_CLOSE_WAIT = 8;
/** Offsets in struct tcp_info of linux/tcp.h, in bytes, since Linux 4.6. */
const FIELDS = { state: 0, lastDataSentMs: 44, dataSegmentsOut: 156 } as const;
const INFO_BYTES = 160;
/** Offsets in a socket address, by the family. */
const FAMILY_AT = 0;
const PORT_AT = 2;
const AF_INET = 2;
const IPV4_AT = 4;
const IPV6_AT = 8;
const IPV6_GROUPS = 8;
const ADDRESS_BYTES = 128;
/** How often a response is looked at, whether it is still under way. */
const LOOK_MS = 5_000;
/** Below it are the standard streams. */
const FIRST_DESCRIPTOR = 3;

type Sockets = {
  sending(descriptor: number): { readonly hasSent: boolean; readonly lastMs: number } | null;
  localPort(descriptor: number): number | null;
  peerPort(descriptor: number): number | null;
  peerAddress(descriptor: number): string | null;
  /** That Bun has not read. */
  hasUnread(descriptor: number): boolean;
  shutDown(descriptor: number): void;
};

let sockets: Sockets | null = null;

type Serving = { readonly request: Request; readonly server: Server<undefined> };

type Wanted = {
  readonly port: number;
  readonly limit: number;
  /** By peer port: those on which a request runs. */
  readonly busy: () => ReadonlySet<number>;
  /**
   * Those without a connection are removed. Null: a connection to which something was sent had a request, which is not
   * so with TLS, whose handshake sends too.
   */
  readonly requested: Set<number> | null;
  readonly count: number;
};

/** All descriptors are below it. Infinite where the system does not tell. */
export function limitOfFiles(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

export function closeStalled({ port, limit, busy, requested, count }: Wanted): number {
  const loaded = load();
  if (loaded === null || !Number.isFinite(limit)) return 0;
  const { sending, localPort, peerPort, hasUnread, shutDown } = loaded;
  const stalled: { descriptor: number; ms: number }[] = [];
  const unconnected = new Set(requested);
  let running: ReadonlySet<number> | null = null;
  for (let descriptor = FIRST_DESCRIPTOR; descriptor < limit; descriptor++) {
    const sent = sending(descriptor);
    if (sent === null || (sent.hasSent && requested === null) || localPort(descriptor) !== port) continue;
    const peer = peerPort(descriptor);
    if (peer === null) continue;
    unconnected.delete(peer);
    running ??= busy();
    if (requested?.has(peer) === true || running.has(peer) || hasUnread(descriptor)) continue;
    stalled.push({ descriptor, ms: sent.lastMs });
  }
  for (const peer of unconnected) requested?.delete(peer);
  const oldest = stalled.toSorted((a, b) => b.ms - a.ms).slice(0, count);
  for (const { descriptor } of oldest) shutDown(descriptor);
  return oldest.length;
}

export function canCutOff(): boolean {
  return load() !== null && Number.isFinite(limitOfFiles());
}

/** However Bun sends it, when `watch` calls back. Needs canCutOff(). */
export function cutOffOn(watch: (onLoss: () => void) => () => void, serving: Serving): void {
  const unwatch = watch(() => shutDownConnection(serving));
  const look = setInterval(() => {
    if (peerOf(serving) !== null) return;
    clearInterval(look);
    unwatch();
  }, LOOK_MS).unref();
}

/** Null when the response has been sent, or the connection is closed. */
function peerOf({ server, request }: Serving): ReturnType<Serving["server"]["requestIP"]> {
  return server.requestIP(request);
}

function shutDownConnection(serving: Serving): void {
  const peer = peerOf(serving);
  const loaded = load();
  if (peer === null || loaded === null) return;
  const { localPort, peerPort, peerAddress, shutDown } = loaded;
  const address = canonicalIp(peer.address);
  const limit = limitOfFiles();
  for (let descriptor = FIRST_DESCRIPTOR; descriptor < limit; descriptor++) {
    const isIt =
      peerPort(descriptor) === peer.port &&
      localPort(descriptor) === serving.server.port &&
      peerAddress(descriptor) === address;
    if (isIt) shutDown(descriptor);
  }
}

/** Null elsewhere than on Linux, and while no descriptor is free for the library. */
function load(): Sockets | null {
  if (process.platform !== "linux") return null;
  try {
    return (sockets ??= openSockets());
  } catch {
    return null; // the next need tries again
  }
}

/** @throws when the library cannot be loaded now */
function openSockets(): Sockets {
  // Not imported above: an idle hub would take 1.5 MiB more.
  const { dlopen }: typeof import("bun:ffi") = require("bun:ffi");
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
    sending(descriptor) {
      length[0] = INFO_BYTES;
      if (symbols.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, infoBytes, length) !== 0) return null;
      const state = info.getUint8(FIELDS.state);
      if (
        must(length[0], "it has one element") < INFO_BYTES ||
        (state !== TCP_ESTABLISHED && state !== TCP_CLOSE_WAIT)
      )
        return null;
      return {
        hasSent: info.getUint32(FIELDS.dataSegmentsOut, isLittleEndian) > 0,
        lastMs: info.getUint32(FIELDS.lastDataSentMs, isLittleEndian), // since it was made, if nothing was sent
      };
    },
    localPort: portBy(symbols.getsockname),
    peerPort: portBy(symbols.getpeername),
    peerAddress(descriptor) {
      length[0] = ADDRESS_BYTES;
      if (symbols.getpeername(descriptor, address, length) !== 0) return null;
      const family = addressView.getUint16(FAMILY_AT, isLittleEndian);
      if (family === AF_INET) return canonicalIp(address.subarray(IPV4_AT, IPV4_AT + 4).join("."));
      const groups = Array.from({ length: IPV6_GROUPS }, (_, i) => addressView.getUint16(IPV6_AT + 2 * i));
      return canonicalIp(groups.map((group) => group.toString(16)).join(":"));
    },
    hasUnread: (descriptor) => Number(symbols.recv(descriptor, byte, 1, MSG_PEEK_DONTWAIT)) > 0,
    shutDown: (descriptor) => void symbols.shutdown(descriptor, SHUT_RDWR),
  };
}
