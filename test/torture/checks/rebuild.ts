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
  "bellcast_permissions"
] as const

/** Checkpoints move with reading and say nothing about anybody. */
const dump = async ({ client }: Look): Promise<Map<string, string>> => {
  const all = new Map<string, string>()
  for (const bucket of buckets)
    for (const [key, value] of await readBucket(client, bucket))
      if (key !== "meta") all.set(`${bucket} ${key}`, value)
  return all
}

export const rebuild: Check = {
  name: "buckets equal a rebuild",
  run: async (look) => {
    await Promise.all(look.fleet.map((member) => member.stop()))
    const before = await dump(look)
    await bellcast(look.natsUrl, "rebuild")
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
