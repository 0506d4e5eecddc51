/** The keys of the hub: list, add, revoke. Needs the administrator key. A new secret is shown once. */
import { Fragment, type JSX, h } from "preact";
import { useState } from "preact/hooks";
import { qrCode } from "../../lib/qr-code.ts";
import { quoted, sizeOf } from "./format.ts";
import { NodeField } from "./node-field.tsx";
import {
  Age,
  Copy,
  Fault,
  Field,
  Form,
  Modal,
  Select,
  State,
  Table,
  askToConfirm,
  runAction,
  showNotice,
  useLoad,
} from "./parts.tsx";
import { describe, hub } from "./session.ts";

const ROLES = [
  ["full", "full"],
  ["viewer", "viewer: only reads"],
  ["admin", "admin"],
] as const;

const VARIANTS = [
  ["", "the listener's"],
  ["A", "A"],
  ["B", "B"],
] as const;

const DAY_S = 86_400;

export function Keys(): JSX.Element {
  const loaded = useLoad("keys", async (from, signal) => (await from.call("key/list", {}, { signal })).keys);
  const [made, setMade] = useState<Made | null>(null);
  const { value, error } = loaded;
  const revoke = async (name: string): Promise<void> => {
    if (!(await askToConfirm(`Revoke ${name}? Its open calls and streams end within a second.`, "Revoke")))
      return;
    await runAction("Revoked.", () => hub.value.call("key/revoke", { name }));
    loaded.reload();
  };
  const add = async (fields: Readonly<Record<string, string>>, form: HTMLFormElement): Promise<void> => {
    const days = Number(fields["days"] || 0);
    try {
      const { name, secret, key } = await hub.value.call("key/add", {
        name: fields["name"] ?? "",
        role: ROLES.map(([word]) => word).find((word) => word === fields["role"]),
        variant: (["A", "B"] as const).find((word) => word === fields["variant"]),
        node_id: fields["node"] || undefined,
        expires_in_s: days > 0 ? days * DAY_S : undefined,
      });
      setMade({ name, secret, role: key.role, node: key.node_id });
      form.reset();
      loaded.reload();
    } catch (fault) {
      showNotice(describe(fault), true);
    }
  };
  return (
    <>
      <header class="head">
        <h1>Keys</h1>
      </header>
      <Fault text={error} />
      <Form class="filters" onSend={add}>
        <Field label="Name" name="name" required />
        <Select label="Role" name="role" options={ROLES} />
        <Select label="Variant" name="variant" options={VARIANTS} />
        <NodeField label="Bound to node" name="node" />
        <Field label="Valid for (days)" name="days" type="number" />
        <button type="submit" class="primary" data-do="add">
          Add
        </button>
      </Form>
      {value && (
        <Table
          label="Keys"
          head={["State", "Name", "Role", "Variant", "Node", "Used", "Made", "Ends", "Actions"]}
        >
          {value.map((key) => (
            <tr key={key.name} class={key.state === "valid" ? undefined : "gone"}>
              <td>
                <State word={key.state} />
              </td>
              <td class="name">{key.name}</td>
              <td>{key.role}</td>
              <td>{key.variant}</td>
              <td class="names">{key.node_id}</td>
              <td>{key.used && `${key.used.tasks} unfinished, ${sizeOf(key.used.bytes)}`}</td>
              <td>
                <Age at={key.created_at} />
              </td>
              <td>
                <Age at={key.revoked_at ?? key.expires_at} />
              </td>
              <td class="buttons">
                {key.state === "valid" && key.created_at !== null && (
                  <button type="button" class="danger" data-do="revoke" onClick={() => void revoke(key.name)}>
                    Revoke
                  </button>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {made && <NewKey made={made} onClose={() => setMade(null)} />}
    </>
  );
}

type Made = {
  readonly name: string;
  readonly secret: string;
  readonly role: string;
  readonly node: string | null;
};

/** The secret, once; and what to paste, or to scan, where it is used. */
function NewKey({ made, onClose }: { made: Made; onClose: () => void }): JSX.Element {
  const { name, secret, role, node } = made;
  const url = new URL(".", location.href).href;
  const rest =
    role === "full" ? ["worker", "--node", quoted(node ?? "worker-1"), "--agent", "claude"] : ["top"];
  const line = [`LUXHUB_URL=${quoted(url)}`, `LUXHUB_SECRET=${quoted(secret)}`, "luxhub", ...rest].join(" ");
  const isLocal = /^(?:localhost|127\..*|\[::1\])$/.test(location.hostname);
  return (
    <Modal title={`The secret of ${name}`} onClose={onClose}>
      <p>The secret is shown only once: the hub keeps only its hash.</p>
      <p class="paste">
        <code>{secret}</code> <Copy text={secret} label="Copy" />
      </p>
      {role !== "admin" && (
        <>
          <p>
            {role === "full"
              ? "Start a worker with it: an agent, or a command after -- in place of --agent claude."
              : "Watch the hub with it:"}
          </p>
          <p class="paste">
            <code>{line}</code> <Copy text={line} label="Copy the command" />
          </p>
          {isLocal && (
            <p class="quiet">
              This address works only on the machine of the hub. Elsewhere, replace {location.hostname}.
            </p>
          )}
          <Qr text={line} label="The command as a QR code" />
        </>
      )}
      <form method="dialog" class="buttons">
        <button>Done</button>
      </form>
    </Modal>
  );
}

/** Dark on light in both themes, with the margin that scanners need. */
function Qr({ text, label }: { text: string; label: string }): JSX.Element | null {
  const code = qrCode(text);
  if (code === null) return null;
  const size = code.length + 8;
  const dark = code.flatMap((row, y) =>
    row.flatMap((isDark, x) => (isDark ? `M${x + 4} ${y + 4}h1v1h-1z` : [])),
  );
  return (
    <svg
      class="qr"
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <path class="light" d={`M0 0h${size}v${size}h-${size}z`} />
      <path d={dark.join("")} />
    </svg>
  );
}
