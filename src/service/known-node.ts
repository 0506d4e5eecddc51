/**
 * Loads the node that a read is about, or rejects it. (A write loads the node in its transaction, and the rule rejects
 * it.)
 */
import { Rejection, nodeNotFound } from "../domain/decision.ts";
import type { Node } from "../domain/model.ts";
import { deletedNode, nodeById } from "../store/sql/nodes.ts";
import type { Store } from "../store/store.ts";

/** @throws {Rejection} node_not_found */
export async function getNode(store: Store, nodeId: string): Promise<Node> {
  const node = await store.read(nodeById(nodeId));
  if (!node) throw new Rejection(nodeNotFound(nodeId));
  return node;
}

/** Of a deleted node its ledger and its messages stay. @throws {Rejection} node_not_found */
export async function getNodeOrDeleted(store: Store, nodeId: string): Promise<Node> {
  return (await store.read(deletedNode(nodeId))) ?? getNode(store, nodeId);
}
