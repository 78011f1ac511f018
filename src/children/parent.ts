// The parent of this process, where it is a child: it gets this process's metrics once a second,
// and gives it the tokens of push services. A child whose parent is gone ends as by SIGTERM.

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { nextMultiple } from "#clock/clocks.ts"
import { watchProcess } from "#telemetry/process-metrics.ts"
import { alone, Group, partOfChild, type TokenRequest, type TokenResponse } from "./group.ts"
import { type ChildPlace, type FromChild, type FromParent, makeActivity } from "./messages.ts"

/** How old metrics of a child may be, and so what of them is lost with one that is killed. */
const reportMillis = 1_000
/** A parent that does not respond for so long stands still. The child then signs by itself. */
const tokenMillisMax = 2_000
const sentMillisMax = 1_000

/** The bounds of a child, its tokens and its reports. */
export const parentLayer = ({ group, processes }: ChildPlace) =>
  Layer.effect(
    Group,
    Effect.gen(function* () {
      const end = () => process.kill(process.pid, "SIGTERM")
      process.once("disconnect", end)
      // The parent may have died while this process started.
      if (!process.connected) end()
      yield* Effect.acquireRelease(
        Effect.sync(() => watchProcess(["delivery"])),
        ({ stop }) => Effect.sync(stop)
      )
      const report = makeReport()
      // After all else has ended: the last report says what the drain has counted.
      yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(report, sentMillisMax)))
      const next = Effect.andThen(nextMultiple(reportMillis), report)
      yield* Effect.forkScoped(Effect.forever(next))
      return {
        ...alone,
        part: (whole: number) => partOfChild(whole, processes),
        processes: () => processes,
        name: () => group,
        askToken: makeAskToken()
      }
    })
  )

/** Sends a message; ends when it is on its way. Without a parent it ends at once. */
const sent = (message: FromChild): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (!process.connected) return resume(Effect.void)
    process.send!(message, undefined, undefined, () => resume(Effect.void))
  })

const makeReport = () => {
  const activityOf = makeActivity()
  return Effect.suspend(() => {
    const series = Metric.snapshotUnsafe(Context.empty())
    return sent({ kind: "report", series, activity: activityOf() })
  })
}

/** Returns a function that asks the parent for a token. */
const makeAskToken = () => {
  const waiting = new Map<number, (response: TokenResponse | undefined) => void>()
  let lastId = 0
  process.on("message", ({ id, kind, response }: FromParent) => {
    if (kind === "token") waiting.get(id)?.(response)
  })
  process.once("disconnect", () => {
    for (const resume of waiting.values()) resume(undefined)
  })
  // Neither the listener nor the channel keeps a process that has ended its work.
  process.channel?.unref()
  return (request: TokenRequest): Effect.Effect<TokenResponse | undefined> =>
    Effect.callback<TokenResponse | undefined>((resume) => {
      lastId += 1
      const id = lastId
      const end = (response: TokenResponse | undefined) => {
        waiting.delete(id)
        resume(Effect.succeed(response))
      }
      if (!process.connected) return end(undefined)
      waiting.set(id, end)
      process.send!({ kind: "token", id, request } satisfies FromChild)
      return Effect.sync(() => void waiting.delete(id))
    }).pipe(
      Effect.timeoutOption(tokenMillisMax),
      Effect.map((response) => (response._tag === "Some" ? response.value : undefined))
    )
}
