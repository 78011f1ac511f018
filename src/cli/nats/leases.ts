// Holds the lease of a follower, so that no other process writes its buckets meanwhile.
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { Followers } from "#nats/follower/follower.ts"
import { overdueMillisOf } from "#nats/follower/lease.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import type { FollowerName } from "#streams/followers.ts"
import { failed, note, type VerbFailed } from "../terminal/output.ts"

/** After this time the wait is announced. A free lease is taken sooner. */
const announceMillis = 500

/**
 * Holds a follower's lease until the scope ends. Fails if a running service keeps it. `lost` fails
 * if the lease is lost later.
 */
export const holdLease = Effect.fnUntraced(function* (name: FollowerName) {
  const followers = yield* Followers
  const former = yield* (yield* Buckets).get("cache", keys.lease(name))
  // A lease that is not renewed is taken within this time.
  const waitMillis = overdueMillisOf(former?.value) + 1_000
  const held = yield* Deferred.make<void>()
  const lost = yield* Deferred.make<never, VerbFailed>()
  const loss = Deferred.fail(lost, failed(`the lease of the ${name} was lost: run this again`))
  const hold = Deferred.succeed(held, undefined).pipe(
    Effect.andThen(Effect.never),
    Effect.ensuring(loss)
  )
  yield* Effect.forkScoped(followers.hold(name, hold))
  const announce = note(`waiting for the lease of the ${name}, at most ${waitMillis / 1000} s`)
  yield* Deferred.await(held).pipe(
    Effect.timeoutOrElse({
      duration: announceMillis,
      orElse: () => Effect.andThen(announce, Deferred.await(held))
    }),
    Effect.timeoutOrElse({
      duration: waitMillis,
      orElse: () =>
        Effect.fail(failed(`a running service holds the lease of the ${name}: stop it first`))
    })
  )
  return { lost: Deferred.await(lost) }
})
