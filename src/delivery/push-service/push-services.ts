// The lanes of this process, one for each push service and VAPID key, and what it tells other workers about them and hears from them.
import { hash } from "node:crypto"
import { Clock, Context, Effect, Layer, Schedule } from "effect"
import { Settings } from "#config"
import { PubSub } from "#nats/connection/pubsub.ts"
import { freshId } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { makePushServiceMetrics } from "#telemetry/metrics.ts"
import { makeLruCache } from "../lru-cache.ts"
import { decodeNews } from "./gossip.ts"
import { makePushService, type Notice, type PushService } from "./push-service.ts"
import { makeSpareTime } from "./spare-time.ts"

const lanesMax = 1_000
/** How often what was counted is told, and what stands is repeated for those who came later or missed it. */
const tellMillis = 2_000

/** Of the hash that names a VAPID key: keys are a handful. */
const keyDigits = 12

const logs = { info: Effect.logInfo, warn: Effect.logWarning, error: Effect.logError }

export class PushServices extends Context.Service<
  PushServices,
  {
    /** The lane of a push service and of the VAPID key (the public one) that we sign with there. */
    readonly of: (origin: string, publicKey: string) => PushService
    /** Logs what an operator should see of a lane, and tells other workers what cannot wait. */
    readonly noticed: (lane: PushService, notices: ReadonlyArray<Notice>) => Effect.Effect<void>
  }
>()("bellcast/delivery/PushServices") {
  static readonly layer = Layer.effect(
    PushServices,
    Effect.gen(function* () {
      const settings = yield* Settings
      const announcements = yield* PubSub
      const metrics = yield* makePushServiceMetrics
      const worker = yield* freshId
      const context = yield* Effect.context<never>()
      const log = yield* EventLog
      /** Sequence in LOG from which on the lanes know of all accepted pushes; undefined: not read yet. */
      let knownFrom: number | undefined
      // A lane that is dropped takes what it knows with it, so the others' knowledge begins anew with the next one.
      const lanes = makeLruCache<PushService>(lanesMax, () => {
        knownFrom = undefined
      })
      const names = new Map<string, string>()

      const nameOf = (publicKey: string): string => {
        const known = names.get(publicKey)
        if (known !== undefined) return known
        const name = hash("sha256", publicKey, "hex").slice(0, keyDigits)
        names.set(publicKey, name)
        return name
      }

      const options = {
        ...settings,
        hasTime: makeSpareTime(),
        knownFrom: () => knownFrom ?? Number.POSITIVE_INFINITY
      }
      const laneOf = (origin: string, key: string): PushService =>
        lanes.of(`${key} ${origin}`, () => makePushService(origin, key, options))

      const say = (notices: ReadonlyArray<Notice>) =>
        Effect.forEach(notices, ({ level, text }) => logs[level](text), { discard: true })

      const tell = (lane: PushService, now: number): void => {
        const news = lane.news(worker, now)
        if (news !== undefined) announcements.tell(subjects.lane, news)
      }

      const show = (now: number): void => {
        metrics.show(
          [...lanes.all()].map((lane) => ({ host: lane.host, state: lane.stateAt(now) }))
        )
      }

      const heard = Effect.fnUntraced(function* (body: unknown) {
        const news = decodeNews(body)
        if (
          news._tag === "Failure" ||
          news.value.worker === worker ||
          !URL.canParse(news.value.origin)
        )
          return
        const { key, origin } = news.value
        const now = yield* Clock.currentTimeMillis
        const notices = laneOf(origin, key).learn(news.value, now)
        if (notices.length === 0) return
        show(now)
        yield* say(notices)
      })
      yield* announcements.listen(
        subjects.lane,
        (body) => void Effect.runForkWith(context)(heard(body))
      )

      /** After the announcements are heard: what others are told of later broadcasts is then heard too. */
      const readKnownFrom = Effect.suspend(() => {
        if (knownFrom !== undefined) return Effect.void
        // Set before the read: a lane that is dropped meanwhile unsets it, and it is read again.
        knownFrom = Number.POSITIVE_INFINITY
        return log.last("log", filters.commands).pipe(
          Effect.tap((last) =>
            Effect.sync(() => {
              if (knownFrom !== undefined) knownFrom = last?.seq ?? 0
            })
          ),
          Effect.catch(() =>
            Effect.sync(() => {
              knownFrom = undefined
            })
          )
        )
      })

      const tellAll = Effect.map(Clock.currentTimeMillis, (now) => {
        for (const lane of lanes.all()) tell(lane, now)
        // Also for what only time has changed: a breaker turns half-open by itself.
        show(now)
      })
      yield* Effect.forkScoped(
        Effect.repeat(Effect.andThen(readKnownFrom, tellAll), Schedule.spaced(tellMillis))
      )

      const noticed = (lane: PushService, notices: ReadonlyArray<Notice>) => {
        if (notices.length === 0 && !lane.isUrgent()) return Effect.void
        return Effect.flatMap(Clock.currentTimeMillis, (now) => {
          tell(lane, now)
          if (notices.length > 0) show(now)
          return say(notices)
        })
      }

      return PushServices.of({
        of: (origin, publicKey) => laneOf(origin, nameOf(publicKey)),
        noticed
      })
    })
  )
}
