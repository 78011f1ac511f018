// LOG says of the end of a cycle what the rig knew then, in that cycle and in later ones: the
// members of a channel, by `bellcast channel show --at`.
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

export const past: Check = {
  name: "LOG says what was true at a time",
  run: async (look) => {
    const moments = [noteMoment(look), look.random.pick(look.model.moments)]
    const violations: Array<string> = []
    for (const { at, members } of moments) {
      const [channel, known] = look.random.pick([...members])
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
