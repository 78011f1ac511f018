// Places for retries in a process. One push service has only some of them, so that retries to the
// others do not wait for its responses.
import * as Effect from "effect/Effect"
import type { Share } from "../push-service/origins.ts"

/** Retries to one push service at a time. */
const atPushServiceMax = 64
/** Retries at a time to hosts that share their places. A wildcard has two such shares. */
const inSharedMax = atPushServiceMax / 2
/** Retries at a time: three slow push services leave places to the others. */
export const retriesAtOnce = 4 * atPushServiceMax

/** Makes the places. The function that it returns runs `retry`, or at once `full`. */
export const makePlaces = () => {
  /** By the name of a share; none: no retry is under way. */
  const taken = new Map<string, number>()
  const add = (name: string, change: number) => {
    const count = (taken.get(name) ?? 0) + change
    if (count > 0) taken.set(name, count)
    else taken.delete(name)
  }
  return <A, E, R, B>({ isOwn, name }: Share, retry: Effect.Effect<A, E, R>, full: B) =>
    Effect.suspend((): Effect.Effect<A | B, E, R> => {
      const max = isOwn ? atPushServiceMax : inSharedMax
      if ((taken.get(name) ?? 0) >= max) return Effect.succeed(full)
      add(name, 1)
      return Effect.ensuring(
        retry,
        Effect.sync(() => add(name, -1))
      )
    })
}
