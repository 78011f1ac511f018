// A bounded map of values that expire. The least recently used one is dropped first.
import { makeRoom } from "./bounded.ts"

export interface ExpiringMap<A> {
  /** The value of a key, unless it expired before `now` (milliseconds). */
  readonly get: (key: string, now: number) => A | undefined
  /** Remembers a value until a time. A later `get` does not extend it. */
  readonly set: (key: string, value: A, until: number) => void
}

export const makeExpiringMap = <A>(max: number): ExpiringMap<A> => {
  const values = new Map<string, { readonly value: A; readonly until: number }>()
  return {
    get: (key, now) => {
      const found = values.get(key)
      if (found === undefined) return undefined
      values.delete(key)
      if (found.until <= now) return undefined
      values.set(key, found)
      return found.value
    },
    set: (key, value, until) => {
      values.delete(key)
      makeRoom(values, max)
      values.set(key, { value, until })
    }
  }
}
