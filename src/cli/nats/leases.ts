// Takes the place of the followers: their buckets may be changed by nobody else meanwhile.
import { Deferred, Effect } from "effect"
import { Followers } from "#nats/follower/follower.ts"
import { type FollowerName, leaseSeconds } from "#streams/followers.ts"
import { note } from "../terminal/note.ts"
import { VerbFailed } from "./nats.ts"

/** A killed service holds its leases for `leaseSeconds`, and the server's clock for them ticks in seconds. */
const waitMillis = leaseSeconds * 1000 + 1_500
/** A lease that is free is held sooner. */
const tellMillis = 500

/** Holds a follower's lease until the scope ends. Fails when a running service keeps it; `lost` fails when it is lost later. */
export const holdLease = Effect.fnUntraced(function* (name: FollowerName) {
  const followers = yield* Followers
  const held = yield* Deferred.make<void>()
  const lost = yield* Deferred.make<never, VerbFailed>()
  const loss = Deferred.fail(
    lost,
    new VerbFailed({ message: `the lease of the ${name} was lost: run this again` })
  )
  const hold = Deferred.succeed(held, undefined).pipe(
    Effect.andThen(Effect.never),
    Effect.ensuring(loss)
  )
  yield* Effect.forkScoped(followers.follow(name, () => hold))
  const tell = note(`waiting for the lease of the ${name}, at most ${waitMillis / 1000} s`)
  yield* Deferred.await(held).pipe(
    Effect.timeoutOrElse({
      duration: tellMillis,
      orElse: () => Effect.andThen(tell, Deferred.await(held))
    }),
    Effect.timeoutOrElse({
      duration: waitMillis,
      orElse: () =>
        Effect.fail(
          new VerbFailed({
            message: `a running service holds the lease of the ${name}: stop it first`
          })
        )
    })
  )
  return { lost: Deferred.await(lost) }
})
