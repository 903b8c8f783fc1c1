// The states of a node on the stage, and keys of pairs of nodes.

/** In the order in which they are drawn: the last lies on top. Each constant is an index. */
export const STATES = ["none", "busy", "gone", "has", "waits", "origin", "wrong"];
export const NONE = 0;
export const BUSY = 1;
export const GONE = 2;
export const HAS = 3;
export const WAITS = 4;
export const ORIGIN = 5;
export const WRONG = 6;

export const pairKey = (a, b) => (a < b ? a * 1e6 + b : b * 1e6 + a);

/**
 * Orders the nodes that are there by state, without a new array for each frame.
 * @param {number[]} there @param {(node: number) => number} stateOf @param {Int32Array} order @param {Uint8Array} rank
 */
export function orderByState(there, stateOf, order, rank) {
  const starts = new Int32Array(STATES.length + 1);
  for (const node of there) starts[(rank[node] = stateOf(node)) + 1]++;
  for (let at = 0; at < STATES.length; at++) starts[at + 1] += starts[at];
  for (const node of there) order[starts[rank[node]]++] = node;
}
