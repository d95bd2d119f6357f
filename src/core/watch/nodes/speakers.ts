import { answerHoldsMs, askEveryMs, askFromMs, mostAsked } from './policy.ts'
import type { NodeRow } from './types.ts'

/** Another node, and the address at which it answers nodes. */
export type AddressedNode = { readonly node: string; readonly address: string }

/** The condition of a node, by which it is decided whether it speaks or another one. */
export type Stand = {
  readonly node: string
  /** Who had the lease of the network last, as far as it knows. */
  readonly holder: string | undefined
  /** For how long its attempts to reach the store have failed. Undefined: it has the store, or does not know. */
  readonly withoutStoreMs: number | undefined
  /** None of its witnesses answers. */
  readonly isIsolated: boolean
}

/**
 * Whether, without the store, messages about the network are up to `one` rather than to `other`: up to the last holder of the
 * lease, who alone knows what receivers were told, and then in the order of the names. Nodes may have seen different
 * holders. Each is silent only for one that also puts itself first: whoever is the holder in its own eyes speaks, and so
 * somebody does.
 */
export const speaksBefore = (one: string, other: string, holder: string | undefined): boolean =>
  one !== other && (one === holder || (other !== holder && one < other))

/** Whether the node may tell another one that it speaks, so that the other one is silent. */
export const maySpeakFor = (asker: string, { node, holder, withoutStoreMs, isIsolated }: Stand): boolean =>
  withoutStoreMs !== undefined && withoutStoreMs >= askFromMs && !isIsolated && speaksBefore(node, asker, holder)

/**
 * The answers of those that come before a node without the store. Whatever is no answer counts as silence, so that two
 * nodes speak rather than none. Pure: `now` is milliseconds of the monotonic clock.
 */
export class Speakers {
  readonly #saidAt = new Map<string, number>()
  #askedAt = Number.NEGATIVE_INFINITY

  /** The nodes to ask now. Empty: it is not time, or nobody is before this one. */
  ask({ node, holder, withoutStoreMs }: Stand, rows: readonly NodeRow[], now: number): readonly AddressedNode[] {
    if (withoutStoreMs === undefined || withoutStoreMs < askFromMs || now - this.#askedAt < askEveryMs) return []
    this.#askedAt = now
    return rows
      .flatMap(({ node: name, hasLeft, facts }) =>
        facts?.peer === undefined || hasLeft ? [] : [{ node: name, address: facts.peer }],
      )
      .filter((one) => speaksBefore(one.node, node, holder))
      .toSorted((one, other) => (speaksBefore(one.node, other.node, holder) ? -1 : 1))
      .slice(0, mostAsked)
  }

  /** A node has said in answer to a question of `askedAt` that it speaks. */
  note(node: string, askedAt: number): void {
    this.#saidAt.set(node, Math.max(askedAt, this.#saidAt.get(node) ?? askedAt))
  }

  /** The first node that speaks instead of this one. Undefined: none, by the answers so far. */
  other(holder: string | undefined, now: number): string | undefined {
    const all = [...this.#saidAt].flatMap(([node, at]) => (now - at < answerHoldsMs ? [node] : []))
    return all.find((node) => all.every((one) => one === node || speaksBefore(node, one, holder)))
  }
}
