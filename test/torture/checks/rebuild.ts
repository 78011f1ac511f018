// The buckets are what `bellcast rebuild` makes of the streams, value for value. The fleet is
// stopped for it, and started again.
import { readBucket } from "../nats/read.ts"
import { type Check, few, type Look } from "./check.ts"
import { bellcast } from "./cli.ts"

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

/** Until the rig has run for so long, no registration can have ended an hour ago. */
const keptMillis = 59 * 60_000

/**
 * Whether the bucket may have an ended registration that a rebuild leaves out: a rebuild forgets it
 * an hour after its end, a service an hour after its projector has seen it, and the rig restarts
 * projectors.
 */
const mayBeForgotten = (bucket: string, value: string): boolean =>
  bucket === "bellcast_registrations" &&
  performance.now() > keptMillis &&
  JSON.parse(value).on === false

const dump = async (look: Look): Promise<Map<string, string>> => {
  const all = new Map<string, string>()
  for (const bucket of buckets) {
    const entries = await readBucket(look.client, bucket)
    const unused = bucket === "bellcast_channels" ? unusedChannels(entries) : new Set()
    for (const [key, value] of entries)
      if (!isLeftOut(look, bucket, key) && !unused.has(key) && !mayBeForgotten(bucket, value))
        all.set(`${bucket} ${key}`, value)
  }
  return all
}

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
    for (const member of look.fleet) await member.start()
    const violations: Array<string> = []
    for (const [key, value] of before)
      if (after.get(key) !== value)
        violations.push(
          `${key}: ${value.length} bytes before, ${after.get(key)?.length ?? "no value"} after`
        )
    for (const key of after.keys()) if (!before.has(key)) violations.push(`${key}: new`)
    return few(violations)
  }
}
