// Reads one entry of a bucket as its leader has it. A bucket with one replica responds directly,
// without JetStream's API: half the CPU of the server and of this process.
import type { Msg } from "@nats-io/transport-node"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import {
  type BucketName,
  bucketStream,
  bucketSubject,
  isEndpointOwners,
  metaKey
} from "#streams/buckets.ts"
import type { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { textOf } from "../connection/headers.ts"
import { infoOf } from "../stream/info.ts"
import { directOf, notFound } from "../stream/read-direct.ts"
import { isUnbuilt, unbuilt } from "./read-many.ts"
import type { Entry } from "./values.ts"

/**
 * How often to ask for the number of replicas. A new replica responds to direct reads no earlier
 * than 2 s after it was added (nats-server 2.15), and may be behind from then on.
 */
const askAgainMillis = 1_500
const timeoutMillis = 5_000

/**
 * A reader that has read `meta` takes the bucket as built for this long after it asked. What marks
 * a bucket as unbuilt, or makes it again, waits for twice this long before entries are missing.
 */
export const builtMillis = 100

type Door = Nats["Service"]
type Found = Effect.Effect<Entry | undefined, NatsUnavailable>
/** While a server starts, it answers direct reads with 503. */
type Direct = Effect.Effect<Entry | undefined | "not ready", NatsUnavailable>

/** Returns a function that reads an entry. See `get` of `Buckets`. */
export const makeGet = (nats: Door, scope: Scope.Scope) => {
  const read = makeReadOne(nats, scope)
  const checkBuilt = makeCheckBuilt(read, scope)
  return Effect.fnUntraced(function* (bucket: BucketName, key: string) {
    const found = yield* read(bucket, key)
    if (found !== undefined || key === metaKey || bucket === "cache") return found
    // Most endpoints have no page. Readers of pages read a list of the bucket, too, and that read
    // finds out whether the bucket is built.
    if (!isEndpointOwners(key)) yield* checkBuilt(bucket)
    return undefined
  })
}

/**
 * Returns a function that fails if a bucket that was lost is being rebuilt: it lacks entries that
 * there are.
 */
const makeCheckBuilt = (read: ReturnType<typeof makeReadOne>, scope: Scope.Scope) => {
  const checks = new Map<
    BucketName,
    { began: number; result: Deferred.Deferred<void, NatsUnavailable> }
  >()
  const readMeta = Effect.fnUntraced(function* (bucket: BucketName) {
    const meta = yield* read(bucket, metaKey)
    if (meta === undefined || isUnbuilt(meta.value)) return yield* unbuilt(bucket)
  })
  return Effect.fnUntraced(function* (bucket: BucketName) {
    const now = performance.now()
    const latest = checks.get(bucket)
    if (latest !== undefined && now < latest.began + builtMillis)
      return yield* Deferred.await(latest.result)
    const check = { began: now, result: Deferred.makeUnsafe<void, NatsUnavailable>() }
    checks.set(bucket, check)
    const forget = Effect.sync(() => {
      if (checks.get(bucket) === check) checks.delete(bucket)
    })
    // In the scope, because others wait for it: this caller may be interrupted.
    yield* readMeta(bucket).pipe(
      Effect.onError(() => forget),
      Deferred.into(check.result),
      Effect.forkIn(scope)
    )
    return yield* Deferred.await(check.result)
  })
}

/** Returns a function that reads an entry; undefined: the bucket has no such key. */
const makeReadOne = (nats: Door, scope: Scope.Scope) => {
  const hasOneReplica = makeHasOneReplica(nats, scope)
  return Effect.fnUntraced(function* (bucket: BucketName, key: string) {
    // Leases and sessions are read from the leader, whatever the number of replicas is.
    const isDirect = bucket !== "cache" && (yield* hasOneReplica(bucket))
    const found = isDirect ? yield* readFromReplica(nats, bucket, key) : "not ready"
    return found === "not ready" ? yield* readFromLeader(nats, bucket, key) : found
  })
}

const entryOf = (key: string, text: string, revision: number): Entry | undefined =>
  text === "" ? undefined : { key, value: JSON.parse(text), revision, bytes: text.length }

/** Asks the leader. */
const readFromLeader = ({ message }: Door, bucket: BucketName, key: string): Found =>
  message(bucketStream(bucket), { last_by_subj: bucketSubject(bucket, key) }).pipe(
    Effect.map((found) =>
      entryOf(key, Buffer.from(found?.data ?? "", "base64").toString(), found?.seq ?? 0)
    ),
    Effect.mapError(unavailable(`get ${bucket}`))
  )

/** Asks the only replica. */
const readFromReplica = ({ api, requestMany }: Door, bucket: BucketName, key: string): Direct =>
  Effect.callback((resume) => {
    const receive = (msg: Msg): boolean => {
      const response = directOf(msg)
      if ("seq" in response)
        resume(Effect.sync(() => entryOf(key, textOf(response.data), response.seq)))
      else resume(Effect.succeed(response.code === notFound ? undefined : "not ready"))
      return true
    }
    const subject = `${api}.DIRECT.GET.${bucketStream(bucket)}.${bucketSubject(bucket, key)}`
    const fail = (cause: unknown) => resume(Effect.fail(unavailable(`get ${bucket}`)(cause)))
    return Effect.sync(requestMany({ subject, payload: "", timeoutMillis }, receive, fail))
  })

/** Tells, without waiting, whether a bucket has one replica; false: more, or not known yet. */
const makeHasOneReplica = (nats: Door, scope: Scope.Scope) => {
  const known = new Map<BucketName, { readonly isOne: boolean; readonly since: number }>()
  const ask = (bucket: BucketName, since: number) =>
    infoOf(nats, bucketStream(bucket)).pipe(
      Effect.map((info) => known.set(bucket, { isOne: info?.config.num_replicas === 1, since })),
      Effect.ignore,
      Effect.forkIn(scope)
    )
  return (bucket: BucketName): Effect.Effect<boolean> => {
    const now = performance.now()
    const { isOne = false, since = -askAgainMillis } = known.get(bucket) ?? {}
    if (now < since + askAgainMillis) return Effect.succeed(isOne)
    known.set(bucket, { isOne: false, since: now })
    return Effect.as(ask(bucket, now), false)
  }
}
