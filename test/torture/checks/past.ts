// LOG says of the end of a cycle what the rig knew then, in that cycle and in later ones: the
// members of a channel, by `bellcast channel show --at`. Before the history it says nothing,
// and nothing of users who were erased since.
import { dayMillis, historyMillis } from "../fleet/days.ts"
import { isIn, type Moment } from "../model/model.ts"
import { type Check, few, type Look } from "./check.ts"
import { bellcast } from "./cli.ts"

const noteMoment = ({ model }: Look): Moment => {
  const membersOf = (channel: string) =>
    new Set(model.users.filter((user) => isIn(user, channel)).map(({ pseudonym }) => pseudonym))
  const moment = {
    at: new Date().toISOString(),
    members: new Map(model.channels.map((channel) => [channel, membersOf(channel)]))
  }
  model.moments.push(moment)
  return moment
}

const askedAt = async (natsUrl: string, channel: string, at: string) => {
  const lines = await bellcast(natsUrl, "channel", "show", channel, "--at", at, "--json")
  const [shown, ...members] = lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
  return { count: shown.registrations as number, users: members.map(({ user }) => user as string) }
}

/** A command may take so long, on a busy machine, until it knows what time it is. */
const lateMillis = 30_000

const ageOf = ({ at }: Moment): number => Date.now() - Date.parse(at)

/** LOG must refuse to say what was true before its history. */
const refusal = async (natsUrl: string, { at, members }: Moment) => {
  const [channel] = [...members.keys()]
  const answer = await askedAt(natsUrl, channel!, at).then(({ count }) => `${count}`, String)
  const isRefused = /is before the history/.test(answer)
  return isRefused ? [] : [`${at} is before the history, and the answer is ${answer}`]
}

export const past: Check = {
  name: "LOG says what was true at a time",
  run: async (look) => {
    const moment = noteMoment(look)
    const within = look.model.moments.filter((each) => ageOf(each) < historyMillis - lateMillis)
    const moments = [moment, look.random.pick(within)]
    const old = look.model.moments.find((each) => ageOf(each) > historyMillis + dayMillis)
    const violations = old === undefined ? [] : await refusal(look.natsUrl, old)
    const gone = new Set(look.model.users.flatMap((user) => (user.erased ? user.pseudonym : [])))
    for (const { at, members } of moments) {
      const [channel, then] = look.random.pick([...members])
      const known = new Set([...then].filter((user) => !gone.has(user)))
      const { count, users } = await askedAt(look.natsUrl, channel, at)
      const missing = [...known].filter((user) => !users.includes(user))
      const more = users.filter((user) => !known.has(user))
      if (missing.length + more.length > 0 || count !== known.size)
        violations.push(
          `${channel} at ${at}: ${count} members, ${known.size} in the model, ` +
            `${missing.length} missing, ${more.length} too many`
        )
    }
    return few(violations)
  }
}
