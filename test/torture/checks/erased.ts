// Of an erased user nothing is left: no view shows anything, and no message of LOG and no entry of
// a bucket has the id, an endpoint or a key. The fact that the user was erased stays.
import { bucketNames, buckets } from "#streams/buckets.ts"
import { filters, subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { historyMillis } from "../fleet/days.ts"
import type { Erasure, Model, Subscription, User } from "../model/model.ts"
import { readBucket, readStream } from "../nats/read.ts"
import { type Check, few, type Look, patient } from "./check.ts"
import { bellcast } from "./cli.ts"

/** How long an erasure takes at most, once all is well. */
const patienceMillis = 60_000
/** A command may take so long, on a busy machine, until it knows what time it is. */
const lateMillis = 30_000

type Erased = User & { readonly erased: Erasure }

const erasedIn = ({ users }: Model): ReadonlyArray<Erased> =>
  users.filter((user): user is Erased => user.erased?.ackedAt !== undefined)

/** Ids, keys and the secret parts of endpoints: words that stand nowhere else. */
const word = /[\w-]{20,}/g

/**
 * The words of a browser that only erased users had. A squatter's command may be in LOG with the
 * endpoint, as one of the squatter.
 */
const wordsOf = ({ squatted }: Model, { device, id }: Subscription): ReadonlyArray<string> => {
  const isOthers =
    device.owners.some(({ user }) => user.erased === undefined) ||
    [...squatted].some((key) => key.endsWith(`.${id}`))
  if (isOthers) return []
  const { browser, endpoint } = device
  return [endpoint.split("/").at(-1)!, browser.auth, browser.p256dh]
}

/** The erased users by the words that must be nowhere. */
const needlesOf = (model: Model): ReadonlyMap<string, User> =>
  new Map(
    erasedIn(model).flatMap((user) => {
      const words = user.subscriptions.flatMap((one) => wordsOf(model, one))
      return [user.id.split(":")[1]!, ...words].map((each) => [each, user] as const)
    })
  )

/** Messages of LOG and entries of buckets that have something of an erased user. */
const leftOf = async ({ client, model }: Look): Promise<ReadonlyArray<string>> => {
  const needles = needlesOf(model)
  const pseudonyms = new Map(erasedIn(model).map((user) => [user.pseudonym, user]))
  const found: Array<string> = []
  const look = (place: string, text: string) => {
    const [first] = (text.match(word) ?? []).filter((each) => needles.has(each))
    if (first !== undefined) found.push(`${place} has ${first} of ${needles.get(first)!.name}`)
  }
  await readStream(client, "BELLCAST_LOG", [filters.commands, "bellcast.evt.>"], 1, (message) => {
    const { seq, subject } = message
    const user = pseudonyms.get(subject.split(".").at(-1)!)
    if (user !== undefined && subject !== subjects.erased(user.pseudonym as UserToken))
      found.push(`message ${seq} of LOG is one of ${user.name}: ${subject}`)
    const headers = JSON.stringify([...(message.headers ?? [])])
    look(`message ${seq} of LOG, ${subject},`, `${headers} ${message.string()}`)
  })
  for (const name of bucketNames)
    for (const [key, value] of await readBucket(client, buckets[name].name))
      look(`entry ${key} of the bucket ${name}`, `${key} ${value}`)
  return found
}

/** Views of the user that show something. */
const shownTo = async ({ gateways }: Look, { name }: User): Promise<ReadonlyArray<string>> => {
  const violations: Array<string> = []
  for (const path of ["/subscriptions", "/registrations"]) {
    const asked = { method: "GET", path, user: name }
    const response = await gateways.until(asked, [200], AbortSignal.timeout(20_000))
    const count = response?.body?.data?.length
    if (count !== 0) violations.push(`GET ${path} shows ${count} to ${name}, who was erased`)
  }
  return violations
}

/** Whether the list of erased users has all. */
const unlisted = async ({ model, natsUrl }: Look): Promise<ReadonlyArray<string>> => {
  const lines = (await bellcast(natsUrl, "user", "erased", "--json")).trim().split("\n")
  const listed = new Set(lines.filter((line) => line !== "").map((line) => JSON.parse(line).user))
  const missing = erasedIn(model).filter(({ pseudonym }) => !listed.has(pseudonym))
  return missing.map(({ name }) => `bellcast user erased lacks ${name}`)
}

/** LOG says nothing of a moment before the erasure, but that the user was erased since. */
const pastOf = async ({ natsUrl }: Look, { erased, id, name }: Erased) => {
  const at = performance.timeOrigin + erased.startedAt - 1_000
  if (Date.now() - at > historyMillis - lateMillis) return []
  const time = new Date(at).toISOString()
  const shown = JSON.parse(await bellcast(natsUrl, "user", "show", id, "--at", time, "--json"))
  const { channels, devices } = shown
  const isUnknown = devices === undefined && channels === undefined
  return shown.erased !== undefined && isUnknown
    ? []
    : [`user show ${name} --at ${time}: devices or channels, or not erased: ${shown.erased}`]
}

export const erased: Check = patient(
  {
    name: "nothing is left of erased users",
    run: async (look) => {
      const all = erasedIn(look.model)
      if (all.length === 0) return []
      const now = all.filter(({ erased: { cycle } }) => cycle === look.cycle)
      look.figures.erased = now.length
      const violations = [...(await leftOf(look)), ...(await unlisted(look))]
      for (const user of now) violations.push(...(await shownTo(look, user)))
      if (now.length > 0) violations.push(...(await pastOf(look, look.random.pick(now))))
      return few(violations)
    }
  },
  patienceMillis
)
