/** The page of a thing, drawn from its declaration. */
import { type ComponentChildren, Fragment, type VNode, h } from "preact";
import { type ActionItem, Actions } from "./action.tsx";
import { type Concerns, type Load, useLoad } from "./load.ts";
import { type FactOf, Facts, Head, Menu, NotLoaded, Section, State } from "./parts.tsx";
import { useSubject } from "./route.ts";

type Detail = {
  readonly subject: string;
  readonly state?: string;
  readonly title: ComponentChildren;
  /** Below the title. */
  readonly more?: ComponentChildren;
  readonly actions: readonly ActionItem[];
  /** Actions that are seldom used, and those that destroy. */
  readonly menu?: readonly ActionItem[];
  readonly above?: ComponentChildren;
  readonly body: ComponentChildren;
  /** Beside the body. */
  readonly facts: readonly FactOf[];
  /** Below the facts. */
  readonly aside?: ComponentChildren;
};

export function DetailPage<T>(props: {
  /** What the thing is, for a page that could not be loaded. */
  what: string;
  id: string;
  /** The address of the list of such things, and its words. */
  back: readonly [address: string, words: string];
  load: Load<T>;
  concerns: Concerns<T>;
  draw: (thing: T) => Detail;
}): VNode | null {
  const { value, error } = useLoad(props.id, props.load, props.concerns);
  const detail = value === null ? null : props.draw(value);
  useSubject(detail?.subject ?? "");
  if (detail === null) return <NotLoaded title={props.what} error={error} back={props.back} />;
  const menu = detail.menu?.filter(Boolean) ?? [];
  return (
    <>
      <Head
        error={error}
        more={
          <div class="buttons">
            <Actions actions={detail.actions} />
            {menu.length > 0 && (
              <Menu label="⋯" title="More actions" name="more">
                <Actions actions={menu} />
              </Menu>
            )}
          </div>
        }
      >
        {detail.state && <State word={detail.state} />} <bdi>{detail.title}</bdi>
      </Head>
      {detail.more}
      {detail.above}
      <div class="columns aside">
        <div>{detail.body}</div>
        <div>
          <Section title="Fields">
            <Facts facts={detail.facts} />
          </Section>
          {detail.aside}
        </div>
      </div>
    </>
  );
}
