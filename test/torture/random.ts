// Random numbers from a seed: the same seed gives the same schedule, names and sizes. SplitMix32,
// seeded with a hash of the seed and a name, so that adding a draw in one place moves no other.
import { createHash } from "node:crypto"

export interface Random {
  /** A number in [0, 1). */
  readonly next: () => number
  /** A whole number from `min` to `max`, both included. */
  readonly between: (min: number, max: number) => number
  readonly chance: (probability: number) => boolean
  /** One of the items; throws when there is none. */
  readonly pick: <A>(items: ReadonlyArray<A>) => A
  /** The items in another order. */
  readonly shuffle: <A>(items: ReadonlyArray<A>) => Array<A>
  /** Random numbers of their own for one purpose: depends on the seed and the names only. */
  readonly fork: (name: string) => Random
}

export const seeded = (seed: string): Random => {
  let state = createHash("sha256").update(seed).digest().readUInt32LE(0)
  const next = () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
  const between = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  return {
    next,
    between,
    chance: (probability) => next() < probability,
    pick: (items) => {
      if (items.length === 0) throw new Error("nothing to pick from")
      return items[between(0, items.length - 1)]!
    },
    shuffle: (items) => {
      const result = [...items]
      for (let i = result.length - 1; i > 0; i--) {
        const j = between(0, i)
        ;[result[i], result[j]] = [result[j]!, result[i]!]
      }
      return result
    },
    fork: (name) => seeded(`${seed}/${name}`)
  }
}
