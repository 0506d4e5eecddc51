/**
 * Finds out why a Redis cannot be used: repeats the client's handshake and reads the first line of the reply. The client
 * itself reports a wrong password and a closed port alike.
 *
 * Must not: put the user name or the password into the diagnosis.
 */
import { codeOf } from "../lib/reason.ts";

/** By the first word of an error reply. */
const REASONS: Readonly<Record<string, string>> = {
  "-WRONGPASS": "it refuses the user name or the password",
  "-NOAUTH": "it requires a password: write it into the URL, as redis://:PASSWORD@HOST:PORT",
  "-DENIED": "it accepts no connections from other machines (protected mode)",
  "-LOADING": "it is still loading its data",
  "-MASTERDOWN": "it has lost its primary",
  "-TLS": "its certificate is not trusted: NODE_EXTRA_CA_CERTS can name the file of another authority",
};

/** Null when it accepts. Never rejects; takes up to `limitMs`. */
export async function diagnose(url: string, limitMs: number): Promise<string | null> {
  const { hostname, port, protocol, username, password } = new URL(url);
  const reply = Promise.withResolvers<string>();
  const timer = setTimeout(() => reply.resolve(""), limitMs);
  const auth = password === "" ? [] : ["AUTH", decoded(username) || "default", decoded(password)];
  let text = "";
  const socket = Bun.connect({
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port || 6379),
    tls: protocol === "rediss:",
    socket: {
      open: (opened) => void opened.write(encode(["HELLO", "3", ...auth])),
      handshake: (_, _trusted, error) => void (error && reply.resolve("-TLS")),
      data: (_, bytes) => {
        text += bytes.toString("latin1");
        if (text.includes("\r\n")) reply.resolve(text);
      },
      close: () => reply.resolve(text),
      error: () => reply.resolve(text),
    },
  });
  try {
    const opened = socket.then(() => reply.promise);
    const [line = ""] = (await Promise.race([opened, reply.promise])).split("\r\n"); // a silent address never opens
    if (line === "") return "it does not answer";
    return line.startsWith("-") ? (REASONS[line.split(" ")[0] ?? ""] ?? `it says ${line.slice(1)}`) : null;
  } catch (error) {
    return `it cannot be reached (${codeOf(error) || "no connection"})`;
  } finally {
    clearTimeout(timer);
    socket.then(
      (opened) => opened.terminate(),
      () => {},
    );
  }
}

/** A "%" that starts no escape sequence stays as it is, as in the client. */
function decoded(word: string): string {
  return word.replaceAll(/(?:%[0-9a-fA-F]{2})+/g, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes; // not UTF-8
    }
  });
}

/** In RESP, the protocol of Redis. */
function encode(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}
