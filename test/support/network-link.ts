/**
 * A network namespace with a link of its own to this machine, for a program behind a cable that can be pulled: packets are
 * lost without a word, as when a cable is cut or a machine loses its power. Linux only, as root, with iproute2.
 */

/** 198.18.0.0/15 is for tests of networks (RFC 2544): each link has four addresses of it. */
const LINKS = 2 ** 15;

export class NetworkLink implements Disposable {
  readonly here: string;
  readonly there: string;
  readonly #name: string;

  constructor() {
    const number = (process.pid * 8 + made++) % LINKS;
    const address = (host: number): string =>
      `198.${18 + (number >> 14)}.${(number >> 6) & 255}.${((number & 63) << 2) + host}`;
    [this.here, this.there] = [address(1), address(2)];
    this.#name = `lux${number}`;
    const [near, far, space] = [this.#near, `${this.#name}b`, this.#name];
    try {
      run(`ip netns add ${space}`);
      run(`ip link add ${near} type veth peer name ${far} netns ${space}`);
      run(`ip address add ${this.here}/30 dev ${near}`);
      run(`ip link set ${near} up`);
      run(`ip -n ${space} address add ${this.there}/30 dev ${far}`);
      run(`ip -n ${space} link set ${far} up`);
      run(`ip -n ${space} link set lo up`);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  get command(): readonly string[] {
    return ["ip", "netns", "exec", this.#name];
  }

  /** Lets so much through in each direction, such as `1mbit` in a second. */
  slow(rate: string): void {
    const shape = `root tbf rate ${rate} burst 32kb latency 60s`;
    run(`tc qdisc add dev ${this.#near} ${shape}`);
    run(`tc -n ${this.#name} qdisc add dev ${this.#name}b ${shape}`);
  }

  /** The cable is pulled: from now on nothing arrives on either side. */
  down(): void {
    run(`ip -n ${this.#name} link set ${this.#name}b down`);
  }

  up(): void {
    run(`ip -n ${this.#name} link set ${this.#name}b up`);
  }

  /** Both ends are up, and what they send is lost on the way, as behind a switch that has failed; until `connect`. */
  disconnect(): void {
    const nowhere = "lladdr 02:00:00:00:00:99 nud permanent";
    run(`ip neighbour replace ${this.there} ${nowhere} dev ${this.#near}`);
    run(`ip -n ${this.#name} neighbour replace ${this.here} ${nowhere} dev ${this.#name}b`);
  }

  connect(): void {
    run(`ip neighbour delete ${this.there} dev ${this.#near}`);
    run(`ip -n ${this.#name} neighbour delete ${this.here} dev ${this.#name}b`);
  }

  /** Bytes that the namespace has sent to a port and that have not been confirmed. */
  unsentTo(port: number): number {
    const lines = run(`ip netns exec ${this.#name} ss -tnH dport = :${port}`).split("\n");
    return Math.max(0, ...lines.map((line) => Number(line.split(/\s+/)[2] ?? 0)));
  }

  [Symbol.dispose](): void {
    Bun.spawnSync(["ip", "link", "delete", this.#near]);
    Bun.spawnSync(["ip", "netns", "delete", this.#name]);
  }

  get #near(): string {
    return `${this.#name}a`;
  }
}

let made = 0;

/** Why no link can be made here; null when one can. */
export const NO_LINK: string | null = whyNoLink();

function whyNoLink(): string | null {
  if (process.platform !== "linux") return "network namespaces are Linux's";
  if (process.getuid?.() !== 0) return "network namespaces need root";
  if (!Bun.which("ip") || !Bun.which("tc") || !Bun.which("ss")) return "no ip, tc and ss here (iproute2)";
  try {
    using link = new NetworkLink();
    link.slow("1mbit");
    return null;
  } catch (error) {
    return `no network namespace can be made here (${error instanceof Error ? error.message.trim() : String(error)})`;
  }
}

function run(command: string): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command.split(" "));
  if (exitCode !== 0) throw new Error(`${command}: ${stderr.toString()}`);
  return stdout.toString();
}
