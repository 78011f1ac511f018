// GET .../events: the state and the counts of a broadcast while it runs, as server-sent events
// (WHATWG HTML, section 9.2).
import * as Effect from "effect/Effect"
import { jsonHash } from "#basics/json.ts"
import { makeShares } from "#basics/limits.ts"
import { isFinal, type Origin, type Standing, standingOf } from "#broadcasts/state.ts"
import { followBroadcast } from "#broadcasts/watch.ts"
import { Identity } from "#identity/identity.ts"
import { eventStreamsOpen } from "#telemetry/request-metrics.ts"
import type { Call } from "../http/request.ts"
import { errorIn, ok, refuse, type Write } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { operation } from "../operation.ts"
import { findOwn } from "./broadcast.ts"
import { maySee } from "./content.ts"
import { detailedViewOf, recipientsOf } from "./view.ts"

/** Streams of one user, in this process. A browser opens six connections to a server at most. */
const streamsPerUserMax = 4
/** Streams of all users, in this process: 170 KB each, measured with 1,000. */
const streamsMax = 256
/** A stream that its client forgot must not stay for ever. Browsers come back by themselves. */
const lifetime = "15 minutes"
/** Proxies close a connection after 30 to 60 seconds without a byte. */
const heartbeat = "15 seconds"
/** At most four events in a second: the poll alone may come right after the first event. */
const eventGap = "250 millis"

const streams = makeShares(streamsPerUserMax, streamsMax)

/** The response of a stream. Without the last header nginx would hold the events back. */
const headers = {
  ...noStore,
  "Content-Type": "text/event-stream; charset=UTF-8",
  "X-Accel-Buffering": "no"
}

export const eventsGet = operation({
  access: "principal",
  read: ({ request }, errors) =>
    Effect.sync(() => {
      if (request.batched) errors.push(errorIn("path", null, "A batch must not contain a stream"))
    }),
  run: Effect.fnUntraced(function* (_, call) {
    const { caller, request } = call
    const origin = yield* findOwn(call)
    const first = yield* standingOf(origin)
    const has = request.headers["last-event-id"]
    // A browser comes back after every end, but not after this status.
    if (isFinal(first) && has === idOf(yield* detailedViewOf(origin, first)))
      return ok(undefined, noStore, 204)
    const user = caller!.user
    yield* demandStream(user)
    const stream = (write: Write) =>
      Effect.raceFirst(writeEvents(origin, first, has, write), endOfRights(call, origin))
    const services = yield* Effect.context<Effect.Services<ReturnType<typeof stream>>>()
    const events = (write: Write) => asOneOf(user, Effect.provideContext(stream(write), services))
    return { status: 200, headers, events }
  }),
  doc: {
    summary: "Follow what becomes of a broadcast, as server-sent events",
    parameters: ["events"],
    responses: { 200: null, 204: null },
    textType: "text/event-stream",
    errors: [404]
  }
})

/** For callers who may read the broadcasts of the channel. */
export const channelEventsGet = operation({ ...eventsGet, access: "viewer" })

/** Writes the events of a broadcast, without the one that the client has already. */
const writeEvents = Effect.fnUntraced(function* (
  origin: Origin,
  first: Standing,
  has: string | undefined,
  write: Write
) {
  const recipients = yield* Effect.cached(recipientsOf(origin))
  let last = has
  const send = Effect.fnUntraced(function* (standing: Standing) {
    const view = yield* detailedViewOf(origin, standing, recipients)
    const id = idOf(view)
    if (id === last) return
    yield* write(`id: ${id}\ndata: ${JSON.stringify(view)}\n\n`)
    last = id
    if (!isFinal(standing)) yield* Effect.sleep(eventGap)
  })
  const heartbeats = Effect.forever(Effect.andThen(Effect.sleep(heartbeat), write(":\n\n")))
  return yield* Effect.raceFirst(followBroadcast(origin, first, send), heartbeats)
})

/** Identifies what an event shows, so that a client that comes back says what it has. */
const idOf = (view: unknown): string => jsonHash(view).slice(0, 16)

/** Refuses a stream beyond the bounds: 429 for those of one user, 503 for all. */
export const demandStream = Effect.fnUntraced(function* (user: string) {
  if (streams.of(user) >= streamsPerUserMax) return yield* refuse("too-many-streams")
  if (streams.total() >= streamsMax) return yield* refuse("unavailable")
})

/** Runs a stream as one of its user's, until it ends or its lifetime is over. */
export const asOneOf = <E, R>(user: string, stream: Effect.Effect<unknown, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const isTaken = streams.take(user, 1)
      eventStreamsOpen(streams.total())
      return isTaken
    }),
    (isTaken) => (isTaken ? stream.pipe(Effect.timeout(lifetime), Effect.ignore) : Effect.void),
    (isTaken) =>
      Effect.sync(() => {
        if (isTaken) streams.give(user, 1)
        eventStreamsOpen(streams.total())
      })
  )

/** The credentials are looked at once a second, the other rights at every so many looks. */
const looksAMinute = 60

/**
 * Returns when the caller may not see a broadcast any more. What cannot be found out now, because
 * NATS or an identity server is away, is looked at again a second or a minute later.
 */
const endOfRights = Effect.fnUntraced(function* (call: Call, origin: Origin) {
  let caller = call.caller
  for (let look = 1; ; look++) {
    yield* Effect.sleep("1 second")
    caller = yield* callerNow(call).pipe(
      Effect.catchTags({
        IdentityUnavailable: () => Effect.succeed(caller),
        TooManyFailures: () => Effect.succeed(undefined)
      })
    )
    if (caller === undefined) return
    if (look % looksAMinute > 0) continue
    if (!(yield* Effect.orElseSucceed(maySee(caller, origin), () => true))) return
  }
})

/** The caller of a request as of now. Undefined: the credentials are those of nobody any more. */
const callerNow = Effect.fnUntraced(function* ({ caller, request }: Call) {
  const now = yield* (yield* Identity).identify(request)
  return now.caller?.id === caller?.id ? now.caller : undefined
})
