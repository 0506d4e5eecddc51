/** The keys of the hub: list, add, revoke. Needs the administrator key. A new secret is shown once. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { sizeOf } from "./format.ts";
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
  const loaded = useLoad("keys", async (from, signal) => (await from.keys.list({}, { signal })).keys);
  const [made, setMade] = useState<{ name: string; secret: string } | null>(null);
  const { value, error } = loaded;
  const revoke = async (name: string): Promise<void> => {
    if (!(await askToConfirm(`Revoke ${name}? Its open calls and streams end within a second.`, "Revoke")))
      return;
    await runAction("Revoked.", () => hub.value.keys.revoke({ name }));
    loaded.reload();
  };
  const add = async (fields: Readonly<Record<string, string>>, form: HTMLFormElement): Promise<void> => {
    const days = Number(fields["days"] || 0);
    try {
      const { name, secret } = await hub.value.keys.add({
        name: fields["name"] ?? "",
        role: ROLES.map(([word]) => word).find((word) => word === fields["role"]),
        variant: (["A", "B"] as const).find((word) => word === fields["variant"]),
        node_id: fields["node"] || undefined,
        expires_in_s: days > 0 ? days * DAY_S : undefined,
      });
      setMade({ name, secret });
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
              <td class="wide">{key.name}</td>
              <td>{key.role}</td>
              <td>{key.variant}</td>
              <td>{key.node_id}</td>
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
      {made && (
        <Modal title={`The secret of ${made.name}`} onClose={() => setMade(null)}>
          <p>The secret is shown only once: the hub keeps only its hash.</p>
          <p class="paste">
            <code>{made.secret}</code> <Copy text={made.secret} label="Copy" />
          </p>
          <form method="dialog" class="buttons">
            <button>Done</button>
          </form>
        </Modal>
      )}
    </>
  );
}
