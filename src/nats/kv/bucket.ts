// The KV buckets: read from the leader, write fenced by the expected revision, and read many keys at a revision or later.
import { DeliverPolicy } from "@nats-io/jetstream"
import { createInbox, type Msg } from "@nats-io/transport-node"
import { Context, Effect, Layer, Schedule } from "effect"
import { type BucketName, metaKey } from "#streams/buckets.ts"
import { bucketStream, bucketSubject } from "../admin/provision.ts"
import { Nats } from "../connection/connection.ts"
import { AppendConflict, type NatsUnavailable, unavailable } from "../connection/errors.ts"
import {
  codeOf,
  isMessageMissing,
  notStored,
  wrongLastSequence,
  wrongLastSequenceInFlight
} from "../connection/request.ts"

export interface Entry {
  readonly key: string
  readonly value: unknown
  readonly revision: number
  /** Of its JSON. */
  readonly bytes: number
}

const inFlightDelay = Schedule.spaced("2 millis")
const floorAttempts = 40
const multiGetMillis = 5_000
const changesInFlight = 1_024
const putMillis = 5_000

export class Buckets extends Context.Service<
  Buckets,
  {
    /** The bucket's last revision, as the leader has it. */
    readonly revision: (bucket: BucketName) => Effect.Effect<number, NatsUnavailable>
    /** The entry as the leader has it, so that a write just acknowledged is seen. */
    readonly get: (
      bucket: BucketName,
      key: string
    ) => Effect.Effect<Entry | undefined, NatsUnavailable>
    /** Writes if the entry's revision is still `revision` (0: if there is none). Returns the new revision. */
    readonly put: (
      bucket: BucketName,
      key: string,
      value: unknown,
      revision: number,
      options?: { readonly ttlSeconds: number }
    ) => Effect.Effect<number, AppendConflict | NatsUnavailable>
    /** The same with a value that is JSON already. */
    readonly putText: (
      bucket: BucketName,
      key: string,
      text: string,
      revision: number,
      options?: { readonly ttlSeconds: number }
    ) => Effect.Effect<number, AppendConflict | NatsUnavailable>
    /** Removes the entry with this revision; a later one stays. */
    readonly remove: (bucket: BucketName, revision: number) => Effect.Effect<void, NatsUnavailable>
    /**
     * All entries that a key or wildcard matches, from any replica that has at least revision `floor` of the bucket.
     * Undefined when that is too much for one answer (1024 entries, 64 MB): the caller asks for less.
     */
    readonly getMany: (
      bucket: BucketName,
      filters: ReadonlyArray<string>,
      floor: number
    ) => Effect.Effect<ReadonlyArray<Entry> | undefined, NatsUnavailable>
    /**
     * Tells the key of every change after revision `after`, in order, none left out. Ends when the bucket cannot be followed without a gap: also
     * when the client had to begin anew, as it does not tell whether the bucket is still the same.
     */
    readonly changes: (
      bucket: BucketName,
      after: number,
      changed: (key: string, revision: number) => void
    ) => Effect.Effect<never, NatsUnavailable>
  }
>()("bellcast/nats/Buckets") {
  static readonly layer = Layer.effect(
    Buckets,
    Effect.gen(function* () {
      const { js, jsm, message, nc, store } = yield* Nats

      const revision = (bucket: BucketName) =>
        Effect.tryPromise({
          try: async () => (await jsm.streams.info(bucketStream(bucket))).state.last_seq,
          catch: unavailable(`revision of ${bucket}`)
        })

      const get = (bucket: BucketName, key: string) =>
        message(bucketStream(bucket), { last_by_subj: bucketSubject(bucket, key) }).pipe(
          Effect.map((found) => {
            if (found?.data === undefined) return undefined
            const text = Buffer.from(found.data, "base64").toString()
            const value: unknown = JSON.parse(text)
            return { key, value, revision: found.seq, bytes: text.length }
          }),
          Effect.mapError(unavailable(`get ${bucket}`))
        )

      const putText = (
        bucket: BucketName,
        key: string,
        text: string,
        revision: number,
        options?: { readonly ttlSeconds: number }
      ) => {
        const headers = {
          "Nats-Expected-Last-Subject-Sequence": String(revision),
          ...(options === undefined ? {} : { "Nats-TTL": `${options.ttlSeconds}s` })
        }
        return store(
          bucketStream(bucket),
          { subject: bucketSubject(bucket, key), payload: text, headers },
          putMillis
        ).pipe(
          Effect.retry({
            times: 50,
            while: (failure) => codeOf(failure) === wrongLastSequenceInFlight,
            schedule: inFlightDelay
          }),
          Effect.map(({ seq }) => seq),
          Effect.mapError((cause) =>
            codeOf(cause) === wrongLastSequence
              ? new AppendConflict({ subject: key })
              : notStored(`put ${bucket}`, bucketStream(bucket), cause)
          )
        )
      }

      // No marker is left behind: one that is put again begins at revision 0.
      const remove = (bucket: BucketName, revision: number) =>
        Effect.tryPromise({
          try: () =>
            jsm.streams
              .deleteMessage(bucketStream(bucket), revision, false)
              .catch((error: unknown) => {
                if (!isMessageMissing(error)) throw error
              }),
          catch: unavailable(`remove from ${bucket}`)
        }).pipe(Effect.asVoid)

      const multiGet = (bucket: BucketName, filters: ReadonlyArray<string>) =>
        Effect.callback<
          { entries: ReadonlyArray<Entry> | undefined; upTo: number },
          NatsUnavailable
        >((resume) => {
          const prefix = bucketSubject(bucket, "")
          const entries: Array<Entry> = []
          const inbox = createInbox()
          const fail = (cause: unknown) => resume(Effect.fail(unavailable(`read ${bucket}`)(cause)))
          const answer = (error: Error | null, msg: Msg) => {
            if (error !== null) {
              sub.unsubscribe()
              return fail(error)
            }
            const status = msg.headers?.code ?? 0
            if (status === 0) {
              const key = (msg.headers?.get("Nats-Subject") ?? "").slice(prefix.length)
              if (key !== metaKey && msg.data.length > 0)
                entries.push({
                  key,
                  value: msg.json(),
                  revision: Number(msg.headers?.get("Nats-Sequence")),
                  bytes: msg.data.length
                })
              return
            }
            sub.unsubscribe()
            // The server stops at 64 MB on the way to us, and says only here how much is missing.
            if (status === 204 && Number(msg.headers?.get("Nats-Num-Pending") ?? 0) > 0)
              resume(Effect.succeed({ entries: undefined, upTo: Number.MAX_SAFE_INTEGER }))
            else if (status === 204)
              resume(
                Effect.succeed({
                  entries,
                  upTo: Number(msg.headers?.get("Nats-UpTo-Sequence") ?? 0)
                })
              )
            else if (status === 413)
              resume(Effect.succeed({ entries: undefined, upTo: Number.MAX_SAFE_INTEGER }))
            else fail(new Error(`multi-get answered ${status} ${msg.headers?.description}`))
          }
          const sub = nc.subscribe(inbox, { callback: answer, timeout: multiGetMillis })
          const request = {
            multi_last: [...filters, metaKey].map((key) => prefix + key),
            batch: 1025
          }
          nc.publish(`$JS.API.DIRECT.GET.${bucketStream(bucket)}`, JSON.stringify(request), {
            reply: inbox
          })
          return Effect.sync(() => sub.unsubscribe())
        })

      const getMany = Effect.fnUntraced(function* (
        bucket: BucketName,
        filters: ReadonlyArray<string>,
        floor: number
      ) {
        if (filters.length === 0) return []
        for (let attempt = 1; ; attempt++) {
          const { entries, upTo } = yield* multiGet(bucket, filters)
          // A follower that lags behind answers with what it has, and says how far that is.
          if (upTo >= floor) return entries
          if (attempt === floorAttempts)
            return yield* unavailable(`read ${bucket}`)(
              new Error(`no replica reached revision ${floor}`)
            )
          yield* Effect.sleep("25 millis")
        }
      })

      const changes = (
        bucket: BucketName,
        after: number,
        changed: (key: string, revision: number) => void
      ) => {
        const subject = bucketSubject(bucket, "")
        const failed = unavailable(`changes of ${bucket}`)
        const open = async () => {
          const consumer = await js.consumers.get(bucketStream(bucket), {
            filter_subjects: [`${subject}>`],
            headers_only: true,
            deliver_policy: DeliverPolicy.StartSequence,
            opt_start_seq: after + 1
          })
          return consumer.consume({ max_messages: changesInFlight, expires: 5_000 })
        }
        return Effect.acquireUseRelease(
          Effect.tryPromise({ try: open, catch: failed }),
          (messages) =>
            Effect.tryPromise({
              try: async () => {
                let why = "the stream ended"
                const watch = async () => {
                  for await (const { type } of messages.status()) {
                    if (!["ordered_consumer_recreated", "stream_not_found"].includes(type)) continue
                    why = type
                    messages.stop()
                  }
                }
                watch().catch(() => {})
                for await (const msg of messages)
                  changed(msg.subject.slice(subject.length), msg.seq)
                throw new Error(why)
              },
              catch: failed
            }),
          (messages) =>
            Effect.promise(() => messages.close()).pipe(
              Effect.timeoutOption("1 second"),
              Effect.ignore
            )
        )
      }

      const put: Buckets["Service"]["put"] = (bucket, key, value, revision, options) =>
        putText(bucket, key, JSON.stringify(value), revision, options)

      return Buckets.of({ revision, get, put, putText, remove, getMany, changes })
    })
  )
}
