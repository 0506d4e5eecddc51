/**
 * Why a Redis cannot be used, in words for the operator: it is greeted over a bare socket, as the client does, and its
 * first line says it. The client itself tells a wrong password from a closed port by nothing.
 *
 * Must not: put anything of the URL but host and port into what it answers.
 */
import { codeOf } from "../lib/reason.ts";

/** By the first word of a refusal. */
const REFUSALS: Readonly<Record<string, string>> = {
  "-WRONGPASS": "it refuses the user name or the password",
  "-NOAUTH": "it wants a password: write it into the URL, as redis://:PASSWORD@HOST:PORT",
  "-DENIED": "it takes nobody from other machines (protected mode)",
  "-LOADING": "it is still loading its data",
  "-MASTERDOWN": "it has lost its primary",
  "-TLS": "its certificate is not trusted: NODE_EXTRA_CA_CERTS can name the file of another authority",
};

/** What Redis says against us; null when it says nothing against us. Never rejects; takes up to `limitMs`. */
export async function refusalOf(url: string, limitMs: number): Promise<string | null> {
  const { hostname, port, protocol, username, password } = new URL(url);
  const heard = Promise.withResolvers<string>();
  const timer = setTimeout(() => heard.resolve(""), limitMs);
  const auth = password === "" ? [] : ["AUTH", decoded(username) || "default", decoded(password)];
  let text = "";
  const socket = Bun.connect({
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port || 6379),
    tls: protocol === "rediss:",
    socket: {
      open: (opened) => void opened.write(encode(["HELLO", "3", ...auth])),
      handshake: (_, _trusted, error) => void (error && heard.resolve("-TLS")),
      data: (_, bytes) => {
        text += bytes.toString("latin1");
        if (text.includes("\r\n")) heard.resolve(text);
      },
      close: () => heard.resolve(text),
      error: () => heard.resolve(text),
    },
  });
  try {
    const opened = socket.then(() => heard.promise);
    const [line = ""] = (await Promise.race([opened, heard.promise])).split("\r\n"); // to a silent address: not opened
    if (line === "") return "it does not answer";
    return line.startsWith("-") ? (REFUSALS[line.split(" ")[0] ?? ""] ?? `it says ${line.slice(1)}`) : null;
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

/** A word of a URL. A "%" that begins no escape stands for itself, as with the client. */
function decoded(word: string): string {
  return word.replaceAll(/(?:%[0-9a-fA-F]{2})+/g, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes; // no UTF-8
    }
  });
}

/** A command as Redis reads it. */
function encode(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}
