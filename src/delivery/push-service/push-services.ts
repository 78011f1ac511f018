// The push services of this process, one for each origin and VAPID key, and the gossip with other
// workers about them.
import { hash } from "node:crypto"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LruCache } from "#basics/bounded.ts"
import { Group, type GroupShape } from "#children/group.ts"
import { monotonicMillis, nextMultiple } from "#clock/clocks.ts"
import { Settings, type SettingsShape } from "#config"
import { PubSub } from "#nats/connection/pubsub.ts"
import { freshId } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { makePushServiceMetrics } from "#telemetry/delivery-metrics.ts"
import { decodeGossip, type Gossip } from "./gossip.ts"
import { Origins } from "./origins.ts"
import { type Notice, PushService } from "./push-service.ts"
import { makeHeadroom } from "./window.ts"

/**
 * How often counts are published, and standing facts again for workers that started later or missed
 * them.
 */
const publishMillis = 2_000

/** Names of VAPID keys: the first digits of their hashes. There are a handful of keys. */
const keysMax = 1_000
const keyDigits = 12
/** Keys of one push service: gossip and stored subscriptions name any. */
const keysPerOriginMax = 32

export class PushServices extends Context.Service<
  PushServices,
  Effect.Success<typeof makePushServices>
>()("bellcast/delivery/PushServices") {
  static readonly layer = Layer.effect(
    PushServices,
    Effect.suspend(() => makePushServices)
  )
}

const makePushServices = Effect.gen(function* () {
  const settings = yield* Settings
  const pubsub = yield* PubSub
  const metrics = yield* makePushServiceMetrics
  const worker = yield* freshId
  const context = yield* Effect.context<never>()
  const log = yield* EventLog
  const keyName = makeKeyNames()
  const knownFrom = new KnownFrom()
  const { all, of } = makeTable(yield* Origins, settings, yield* Group, knownFrom)

  const publish = (pushService: PushService, now: number): void => {
    const gossip = pushService.takeGossip(worker, now)
    if (gossip !== undefined) pubsub.publish(subjects.pushService, gossip)
  }

  const showMetrics = (now: number): void =>
    metrics.show(all().map((each) => ({ host: each.host, state: each.stateAt(now) })))

  const receive = Effect.fnUntraced(function* (body: unknown) {
    const gossip = foreignGossip(body, worker)
    if (gossip === undefined) return
    const now = yield* monotonicMillis
    const notices = of(gossip.origin, gossip.key).merge(gossip, now)
    if (notices.length === 0) return
    showMetrics(now)
    yield* logAll(notices)
  })
  yield* pubsub.subscribe(
    subjects.pushService,
    (body) => void Effect.runForkWith(context)(receive(body))
  )

  const publishAll = Effect.map(monotonicMillis, (now) => {
    for (const each of all()) publish(each, now)
    // Time alone changes states too: an open breaker turns half-open.
    showMetrics(now)
  })
  const readKnownFrom = Effect.suspend(() => knownFrom.read(log))
  const publishNext = Effect.andThen(publishAll, nextMultiple(publishMillis))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(readKnownFrom, publishNext)))

  /** Logs notices, and publishes urgent gossip. */
  const report = (pushService: PushService, notices: ReadonlyArray<Notice>) => {
    if (notices.length === 0 && !pushService.isUrgent) return Effect.void
    return Effect.flatMap(monotonicMillis, (now) => {
      publish(pushService, now)
      if (notices.length > 0) showMetrics(now)
      return logAll(notices)
    })
  }

  return {
    /** The push service at an origin, as used with this VAPID public key. */
    of: (origin: string, publicKey: string) => of(origin, keyName(publicKey)),
    report
  }
})

/** The push services by origin and key. A dropped one loses what it knew of accepted pushes. */
const makeTable = (
  origins: Origins["Service"],
  settings: SettingsShape,
  { name: group, part }: GroupShape,
  knownFrom: KnownFrom
) => {
  const dropped = (pushService: PushService): void => {
    if (pushService.newest > 0) knownFrom.forget()
  }
  const options = {
    ...settings,
    part,
    group,
    hasHeadroom: makeHeadroom(),
    knownFrom: () => knownFrom.get()
  }
  const table = origins.table(
    (origin) => ({ origin, byKey: new LruCache<PushService>(keysPerOriginMax, dropped) }),
    ({ byKey }) => {
      for (const each of byKey.all()) dropped(each)
    }
  )
  return {
    all: (): ReadonlyArray<PushService> => [...table.all()].flatMap(({ byKey }) => byKey.all()),
    of: (name: string, key: string): PushService => {
      const { byKey, origin } = table.of(name)
      return byKey.of(key, () => new PushService(name, key, { ...options, remembered: origin }))
    }
  }
}

/** The sequence in LOG from which on this process receives gossip of all accepted pushes. */
class KnownFrom {
  /** Undefined: not read yet. */
  #seq: number | undefined

  get(): number {
    return this.#seq ?? Number.POSITIVE_INFINITY
  }

  forget(): void {
    this.#seq = undefined
  }

  /** Reads the end of LOG once. Run it after the subscription to gossip, so that none is missed. */
  read(log: EventLog["Service"]): Effect.Effect<void> {
    if (this.#seq !== undefined) return Effect.void
    // Set before the read: if `forget` is called meanwhile, it is read again.
    this.#seq = Number.POSITIVE_INFINITY
    return Effect.match(log.last("log", filters.commands), {
      onSuccess: (last) => {
        if (this.#seq !== undefined) this.#seq = last?.seq ?? 0
      },
      onFailure: () => this.forget()
    })
  }
}

/** Returns a function that names a VAPID key by the first digits of its hash. */
const makeKeyNames = () => {
  const names = new LruCache<string>(keysMax)
  return (publicKey: string): string =>
    names.of(publicKey, () => hash("sha256", publicKey, "hex").slice(0, keyDigits))
}

/** Returns gossip of another worker; undefined where the message is our own or malformed. */
const foreignGossip = (body: unknown, worker: string): Gossip | undefined => {
  const decoded = decodeGossip(body)
  if (decoded._tag === "Failure") return undefined
  const gossip = decoded.value
  return gossip.worker === worker || !URL.canParse(gossip.origin) ? undefined : gossip
}

const logs = { info: Effect.logInfo, warn: Effect.logWarning, error: Effect.logError }

const logAll = (notices: ReadonlyArray<Notice>) =>
  Effect.forEach(notices, ({ level, text }) => logs[level](text), { discard: true })
