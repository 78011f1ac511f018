// Whom a broadcast goes to: one channel; or, by a request that names them, up to three channels and
// users, some of whom it excepts.
import { createHash } from "node:crypto"
import type { Broadcast, Model, Recipients, User } from "../model/model.ts"
import type { Random } from "../random.ts"

/** Enough more users that a broadcast does not fit into one message and has parts. */
const strangersMax = 950
const usersMax = 20
const channelsMax = 3

/** Draws the recipients of a broadcast. `isGuest`: it may name no other channel. */
export const makeRecipients =
  (model: Model, random: Random) =>
  (via: Broadcast["via"], channel: string, isGuest: boolean): Recipients => {
    const some = (all: ReadonlyArray<User>) => {
      const users = all.filter(({ erased }) => erased === undefined)
      if (users.length === 0) return []
      return Array.from({ length: random.between(1, usersMax) }, () => random.pick(users))
    }
    const nobody = { users: new Set<User>(), except: new Set<User>() }
    if (!via.startsWith("to users"))
      return { channels: [channel], ...nobody, strangers: 0, exceptedStrangers: 0 }
    const others = random.shuffle(model.channels.filter((one) => one !== channel))
    const most = random.between(0, isGuest ? 1 : channelsMax)
    const channels = [channel, ...others].slice(0, most)
    const named = channels.length > 0 && random.chance(0.3) ? [] : some(model.users)
    const members = model.users.filter(({ memberships }) =>
      channels.some((one) => memberships.has(one))
    )
    const reached = [...named, ...members]
    const excepted = random.chance(0.5) ? some(reached.length > 0 ? reached : model.users) : []
    const strangers = () => (random.chance(0.3) ? random.between(1, strangersMax) : 0)
    return {
      channels,
      users: new Set(named),
      except: new Set(excepted),
      strangers: named.length > 0 ? strangers() : 0,
      exceptedStrangers: excepted.length > 0 ? strangers() : 0
    }
  }

/** The id of a user who never came. */
const strangerOf = (marker: string, i: number) =>
  `basicauth:${createHash("sha256").update(`${marker} ${i}`).digest("hex")}`

const idsOf = (users: ReadonlySet<User>, marker: string, first: number, strangers: number) => [
  ...[...users].map(({ id }) => id),
  ...Array.from({ length: strangers }, (_, i) => strangerOf(marker, first + i))
]

/** `to` in the body of a request. */
export const toOf = (broadcast: Broadcast): object => {
  const { channels, except, exceptedStrangers, marker, strangers, users } = broadcast
  const excepted = idsOf(except, marker, strangers, exceptedStrangers)
  return {
    channels,
    users: idsOf(users, marker, 0, strangers),
    ...(excepted.length === 0 ? {} : { except_users: excepted })
  }
}
