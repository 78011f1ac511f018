// The buckets are what `bellcast rebuild` makes of the streams, value for value but for what
// trimming and erasures make differ (same.ts). The fleet is stopped for it, and started again.
import { readBucket } from "../nats/read.ts"
import { type Check, few, type Look } from "./check.ts"
import { bellcast } from "./cli.ts"
import { missingIn } from "./history.ts"
import { type Ground, isSame } from "./same.ts"

/** Subjects of the facts that a user was erased begin so. */
const erased = "bellcast.evt.erased."

const buckets = [
  "bellcast_subscriptions",
  "bellcast_registrations",
  "bellcast_channels",
  "bellcast_broadcasts",
  "bellcast_permissions",
  "bellcast_drafts"
] as const

/**
 * Channels that nobody is registered on. A rebuild has no entry of them; a service forgets them a
 * second later, and a killed nats-server may bring their entries back until the next start.
 */
const unusedChannels = (entries: ReadonlyMap<string, string>): ReadonlySet<string> => {
  const begins = new Set<number>()
  for (const [key, value] of entries)
    if (key.startsWith("=begin.")) begins.add(JSON.parse(value).since)
  const used = new Set<string>()
  for (const [key, value] of entries) {
    const { registrations, since } = JSON.parse(value)
    if (registrations > 0 && begins.has(since)) used.add(key.split(".")[0]!)
  }
  const all = [...entries.keys()].filter((key) => /\.(registrations|pushes)$/u.test(key))
  return new Set(all.filter((key) => !used.has(key.split(".")[0]!)))
}

/**
 * Left out: checkpoints, which move with reading and say nothing about anybody; and the progress of
 * broadcasts whose final counts are in LOG, which win. The service deletes that progress, but a
 * nats-server that is killed brings deleted messages of the last block back (2.15.1).
 */
const isLeftOut = ({ recorded }: Look, bucket: string, key: string): boolean =>
  key === "meta" || (bucket === "bellcast_broadcasts" && recorded.finished.has(Number(key)))

interface Stored {
  readonly bucket: string
  readonly key: string
  readonly value: string
}

const dump = async (look: Look): Promise<Map<string, Stored>> => {
  const all = new Map<string, Stored>()
  for (const bucket of buckets) {
    const entries = await readBucket(look.client, bucket)
    const unused = bucket === "bellcast_channels" ? unusedChannels(entries) : new Set()
    for (const [key, value] of entries)
      if (!isLeftOut(look, bucket, key) && !unused.has(key))
        all.set(`${bucket} ${key}`, { bucket, key, value })
  }
  return all
}

const groundOf = async (look: Look): Promise<Ground> => {
  const { noted } = look.recorded
  const missing = new Set(await missingIn(look))
  return {
    now: Date.now(),
    // The rig may not have read the command of an erasure before it was deleted.
    hasMessage: (seq) => noted.has(seq) && !missing.has(seq),
    storedAt: (seq) => noted.get(seq)?.at ?? 0,
    areErased: [...noted.values()].some(({ subject }) => subject.startsWith(erased))
  }
}

const bytesOf = (value: string | undefined): string =>
  value === undefined ? "no value" : `${value.length} bytes, message ${JSON.parse(value).seq}`

export const rebuild: Check = {
  name: "buckets equal a rebuild",
  run: async (look) => {
    await Promise.all(look.fleet.map((member) => member.stop()))
    await look.recorded.update()
    const before = await dump(look)
    const rebuilt = () => bellcast(look.natsUrl, "rebuild")
    // A busy machine may renew a lease too late. The verb then asks to be run again.
    await rebuilt().catch((error) =>
      /lease .* was lost: run this again/.test(String(error)) ? rebuilt() : Promise.reject(error)
    )
    const after = await dump(look)
    const ground = await groundOf(look)
    for (const member of look.fleet) await member.start()
    const violations = [...new Map([...before, ...after])].flatMap(([name, { bucket, key }]) => {
      const [one, other] = [before.get(name)?.value, after.get(name)?.value]
      return isSame({ bucket, key, before: one, after: other }, ground)
        ? []
        : [`${name}: ${bytesOf(one)} before, ${bytesOf(other)} after`]
    })
    return few(violations)
  }
}
