// Verdicts on verified tokens, within a share of the memory of all caches.
import * as Effect from "effect/Effect"
import { Caches, MemoryCache } from "#memory/cache-memory.ts"
import type { Known } from "../verdict.ts"

/** Bytes of V8's heap (measured): a verdict with its key; a name, without its characters. */
const verdictBytes = 500
const groupBytes = 32

const bytesOf = ({ groups, rights, user }: Known): number =>
  [user, ...groups, ...(rights?.channels ?? [])].reduce(
    (sum, text) => sum + groupBytes + text.length,
    verdictBytes
  )

export interface KnownVerdicts {
  /** The verdict of a key, unless it expired before `now`. Times are monotonic milliseconds. */
  readonly get: (key: string, now: number) => Known | undefined
  readonly set: (key: string, verdict: Known, until: number) => void
}

export const makeKnownVerdicts = Effect.map(Caches, (caches): KnownVerdicts => {
  const memory = new MemoryCache<Known>(caches.share("logins"), 1)
  return {
    get: (key, now) => memory.get(key, now),
    set: (key, verdict, until) => memory.set(key, verdict, bytesOf(verdict), until)
  }
})
