// Watches buckets while faults are under way. Each value names the last message of LOG that it has,
// and that sequence never goes back: a lower one after a higher one is the write of a process that
// lost its lease. The end of a cycle does not show such a write if a later one repairs it.

import { setTimeout as sleep } from "node:timers/promises"
import { type ConsumerMessages, DeliverPolicy, type JsMsg } from "@nats-io/jetstream"
import type { RigClient } from "./client.ts"

/** The buckets of the projector whose values have `seq`, and the keys that are the projector's. */
const watched = [
  ["bellcast_subscriptions", ">"],
  ["bellcast_registrations", ">"],
  ["bellcast_channels", "*.registrations"]
] as const

const expiresMillis = 5_000
const againMillis = 500

export interface StepsBack {
  /** One line for each entry that went back. */
  readonly found: ReadonlyArray<string>
  readonly stop: () => Promise<void>
}

/** A value that was seen: its revision in the bucket, and the message of LOG that it has. */
interface Seen {
  readonly revision: number
  readonly seq: number
}

export interface Given extends Seen {
  readonly bucket: string
  readonly key: string
}

/** Compares a value with the one of its key before. Returns what went back; undefined: nothing. */
export const makeComparison = () => {
  const last = new Map<string, Seen>()
  return ({ bucket, key, revision, seq }: Given): string | undefined => {
    const name = `${bucket} ${key}`
    const before = last.get(name)
    // Read again, or brought back by a killed nats-server.
    if (before !== undefined && revision <= before.revision) return undefined
    // The list of an erased user, which has no message any more. Former values must not come back.
    const isBlank = bucket === "bellcast_subscriptions" && seq === 0
    last.set(name, { revision, seq: isBlank ? (before?.seq ?? 0) : seq })
    if (isBlank) return undefined
    if (before === undefined || seq >= before.seq) return undefined
    return `${name}: had message ${before.seq} of LOG, then ${seq}`
  }
}

const givenOf = (bucket: string, message: JsMsg): Given | undefined => {
  const key = message.subject.slice(`$KV.${bucket}.`.length)
  if (key === "meta" || message.headers?.has("KV-Operation")) return undefined
  const { seq } = message.json<{ readonly seq: number }>()
  return { bucket, key, revision: message.seq, seq }
}

/** Begins with the present values, so that the first changes have something to be compared with. */
const open = async ({ js }: RigClient, bucket: string, filter: string) => {
  const consumer = await js.consumers.get(`KV_${bucket}`, {
    filter_subjects: [`$KV.${bucket}.${filter}`],
    deliver_policy: DeliverPolicy.LastPerSubject
  })
  return consumer.consume({ max_messages: 500, expires: expiresMillis })
}

/** Watches until `stop`, over restarts of nats-server. */
export const watchStepsBack = (client: RigClient): StepsBack => {
  const found: Array<string> = []
  const compare = makeComparison()
  const reading = new Set<ConsumerMessages>()
  const stopping = new AbortController()

  const read = async (bucket: string, filter: string) => {
    const messages = await open(client, bucket, filter)
    reading.add(messages)
    try {
      if (stopping.signal.aborted) return
      for await (const message of messages) {
        const given = givenOf(bucket, message)
        const wrong = given && compare(given)
        if (wrong !== undefined) found.push(wrong)
      }
    } finally {
      reading.delete(messages)
      await messages.close()
    }
  }

  const watch = async (bucket: string, filter: string) => {
    while (!stopping.signal.aborted) {
      await read(bucket, filter).catch(() => {})
      await sleep(againMillis, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  const watches = watched.map(([bucket, filter]) => watch(bucket, filter))
  return {
    found,
    stop: async () => {
      stopping.abort()
      for (const messages of reading) messages.stop()
      await Promise.race([Promise.all(watches), sleep(expiresMillis)])
    }
  }
}
