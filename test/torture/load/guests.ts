// Publishers whose right is revoked while their requests are under way: users with a grant for one
// channel, and servers with a token.
import { setTimeout as sleep } from "node:timers/promises"
import { idOf } from "../fleet/users.ts"
import { acknowledge, begin, type Model, type Right } from "../model/model.ts"
import type { Random } from "../random.ts"
import type { Operator } from "./operator.ts"
import type { Guest, Publish } from "./publish.ts"

/** Lets one guest publish, from the grant until some time after the right has ended. */
export type Visit = (stop: AbortSignal) => Promise<void>

/** Section 7.9 of the contract: gateways may accept a revoked token for one more second. */
const tokenGraceMillis = 1_000

export const makeGuests = (
  model: Model,
  operator: Operator,
  publish: Publish,
  random: Random
): Visit => {
  let count = 0

  const byGrant = async (channel: string) => {
    const user = `guest-${count++}`
    const args = [channel, idOf(user)]
    await operator(() => ["permissions", "grant", ...args])
    const right: Right = { graceMillis: 0, isHeld: true }
    const guest: Guest = { right, as: { user }, ways: ["post", "post with key"] }
    return { guest, revoke: () => operator(() => ["permissions", "revoke", ...args]) }
  }

  const byToken = async (channel: string) => {
    let name = ""
    // A command that seemed to fail may have made its token.
    const create = () => {
      name = `guest-${count++}`
      return ["token", "create", name, "--channel", channel, "--users", "--expires", "1h"]
    }
    const authorization = `Bearer ${(await operator(create)).trim()}`
    const right: Right = { graceMillis: tokenGraceMillis, isHeld: false }
    const as = { user: undefined, headers: { authorization } }
    const guest: Guest = { right, as, ways: ["post with key", "to users", "to users with key"] }
    return { guest, revoke: () => operator(() => ["token", "revoke", name]) }
  }

  return async (stop) => {
    // The channel for nearly everybody would be too much, and a grant names no pattern.
    const [, ...others] = model.channels.filter((channel) => channel !== "*")
    const channel = random.pick(others)
    const { guest, revoke } = await random.pick([byGrant, byToken])(channel)
    let isOver = false
    const publishing = async () => {
      while (!isOver) {
        await publish(channel, stop, guest)
        await sleep(random.between(200, 800))
      }
    }
    const published = publishing()
    await sleep(random.between(500, 3_000))
    guest.right.revoked = begin()
    await revoke()
    acknowledge(guest.right.revoked)
    await sleep(guest.right.graceMillis + random.between(500, 2_000))
    isOver = true
    await published
  }
}
