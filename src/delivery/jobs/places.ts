// Places for retries in a process. One push service has only some of them, so that retries to the
// others do not wait for its responses.
import * as Effect from "effect/Effect"

/** Retries to one push service at a time. */
const atPushServiceMax = 64
/** Retries at a time: three slow push services leave places to the others. */
export const retriesAtOnce = 4 * atPushServiceMax

/** Makes the places. The function that it returns runs `retry`, or at once `full`. */
export const makePlaces = () => {
  /** By the host of the push service; none: no retry is under way. */
  const taken = new Map<string, number>()
  const add = (host: string, change: number) => {
    const count = (taken.get(host) ?? 0) + change
    if (count > 0) taken.set(host, count)
    else taken.delete(host)
  }
  return <A, E, R, B>(host: string, retry: Effect.Effect<A, E, R>, full: B) =>
    Effect.suspend((): Effect.Effect<A | B, E, R> => {
      if ((taken.get(host) ?? 0) >= atPushServiceMax) return Effect.succeed(full)
      add(host, 1)
      return Effect.ensuring(
        retry,
        Effect.sync(() => add(host, -1))
      )
    })
}
