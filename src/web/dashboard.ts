/**
 * The files of the dashboard, built from page/. In the executable they are embedded: `bun build` has built the imported
 * HTML with all that it names. From source they are built at the first request. They are compressed at the first request
 * too, because the bundler cannot embed what it compresses. Must not: know a route or a request.
 */
import page from "./page/index.html";

export type DashboardFile = {
  readonly content: Blob;
  readonly gzip: Blob;
  readonly brotli: Blob;
  readonly type: string;
  readonly etag: string;
};

export type Dashboard = {
  readonly page: DashboardFile;
  /** Scripts and styles, by names that change with their contents. */
  readonly assets: ReadonlyMap<string, DashboardFile>;
  /** The hashes of the scripts, as the page states them in `integrity` (Subresource Integrity). */
  readonly scripts: readonly string[];
};

/** The page names its assets by paths that begin with this, relative to its own. */
export const ASSETS = "assets/";

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

/** By the name of the hub. */
const made = new Map<string | null, Promise<Dashboard>>();

/**
 * @param name what people call this hub: the page has it as its `application-name`, so that it is there before a sign-in
 * @throws when the page cannot be built from source; the next call tries again
 */
export function dashboard(name: string | null): Promise<Dashboard> {
  const found =
    made.get(name) ??
    make(name).catch((error: unknown) => {
      made.delete(name);
      throw error;
    });
  made.set(name, found);
  return found;
}

async function make(name: string | null): Promise<Dashboard> {
  const files = await (page.files === undefined ? build(page.index) : embedded(page.files));
  let html = "";
  const assets = new Map<string, DashboardFile>();
  for (const [file, text] of files) {
    if (file.endsWith(".html")) html = text;
    else assets.set(file, await fileOf(file, text));
  }
  // The bundler writes paths from the root; relative ones also work behind a proxy that serves the hub under a prefix.
  const scripts = new Map(
    files
      .filter(([name]) => name.endsWith(".js"))
      .map(([name, text]) => [
        name,
        `sha256-${new Bun.CryptoHasher("sha256").update(text).digest("base64")}`,
      ]),
  );
  const relative = html.replaceAll(
    /(href|src)="[./]*\/([^"/]+\.(?:css|js))"/g,
    (_, attribute: string, name: string) => {
      const hash = scripts.get(name);
      return `${attribute}="${ASSETS}${name}"${hash === undefined ? "" : ` integrity="${hash}"`}`;
    },
  );
  const named = name === null ? "" : `<meta name="application-name" content="${name}">`; // it has no character to escape
  return {
    page: await fileOf("index.html", relative.replace("</head>", `${named}</head>`)),
    assets,
    scripts: [...scripts.values()],
  };
}

type Texts = readonly (readonly [name: string, text: string])[];

async function build(entry: string): Promise<Texts> {
  // Without it, JSX is compiled with names of files and numbers of lines.
  const define = { "process.env.NODE_ENV": '"production"' };
  const { outputs } = await Bun.build({ entrypoints: [entry], target: "browser", minify: true, define });
  return Promise.all(outputs.map(async (file) => [nameOf(file.path), await file.text()] as const));
}

function embedded(files: NonNullable<typeof page.files>): Promise<Texts> {
  return Promise.all(files.map(async ({ path }) => [nameOf(path), await Bun.file(path).text()] as const));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

async function fileOf(name: string, text: string): Promise<DashboardFile> {
  const type = TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  const hash = new Bun.CryptoHasher("sha256").update(text).digest("hex");
  const bytes = Buffer.from(text);
  return {
    content: new Blob([text]),
    gzip: new Blob([Bun.gzipSync(bytes, { level: 9 })]),
    brotli: await brotliOf(bytes),
    type,
    etag: `"${hash.slice(0, 32)}"`,
  };
}

/** The smallest form. It takes some 300 ms of another thread, once. */
async function brotliOf(bytes: Buffer): Promise<Blob> {
  const { brotliCompress } = await import("node:zlib");
  const { promise, resolve, reject } = Promise.withResolvers<Blob>();
  brotliCompress(bytes, (error, made) =>
    error ? reject(error) : resolve(new Blob([Uint8Array.from(made)])),
  );
  return promise;
}
