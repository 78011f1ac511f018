// Every change of a broadcast's state in every state, by those who may write some of what it goes
// to, or no longer do: contract 4.8 for callers that the conformance suite does not have.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { broadcastPath, patchState, untilShown } from "../support/broadcast-states.ts"
import { call, join, publishAt } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { permit } from "../support/run-cli.ts"
import { type Service, startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

/** With a subscriber, and without one: a broadcast to the second two finishes at once. */
const heard = ["art", "books"]
const silent = ["chess", "dance"]
const states = ["scheduled", "running", "paused", "cancelled", "finished"]
const wanted = ["running", "paused", "cancelled"]
/** The changes that the contract refuses, by state; all others are 200. */
const impossible: Readonly<Record<string, ReadonlyArray<string>>> = {
  scheduled: ["running", "paused"],
  cancelled: ["running", "paused"],
  finished: wanted
}

/** The grants of each caller. The publisher loses them before any change. */
const grants: Readonly<Record<string, ReadonlyArray<string>>> = {
  publisher: [...heard, ...silent],
  editor: [...heard, ...silent],
  userless: [...heard, ...silent],
  partial: ["art", "chess"]
}

const kinds = [
  { name: "to channels", users: false, may: ["publisher", "editor", "userless"] },
  { name: "to channels and users", users: true, may: ["publisher", "editor"] }
]
const callers = [...Object.keys(grants), "other"]

/**
 * Groups of callers that share a broadcast: a refused change leaves its state as it was, so only
 * the last caller of a group may change it.
 */
const turnsOf = (may: ReadonlyArray<string>, isRefused: boolean) => {
  if (isRefused) return [callers]
  const [first, ...others] = may
  const outsiders = callers.filter((caller) => !may.includes(caller))
  return [[...outsiders, first!], ...others.map((caller) => [caller])]
}

describe("rights to change the state of a broadcast", { timeout: 120_000 }, () => {
  let nats: TestNats
  let push: PushService
  let service: Service

  const permitAll = async (verb: "grant" | "revoke", user: string) => {
    for (const channel of grants[user]!) await permit(nats.url, verb, channel, user)
  }
  beforeAll(async () => {
    nats = await startNats({ syncAlways: false })
    push = await startPushService()
    service = await startService({
      natsUrl: nats.url,
      env: {
        BELLCAST_CHANNEL_WRITE_PRINCIPALS: `other=${idOf("nobody")}`,
        BELLCAST_USER_WRITE_PRINCIPALS: [idOf("publisher"), idOf("editor")].join(" ")
      }
    })
    // A push is tried again and again, so that a broadcast to the browser stays running.
    await join([service.url], heard[0]!, [push.subscribe({ script: ["503"] }).subscription])
    for (const user of Object.keys(grants)) await permitAll("grant", user)
  })
  afterAll(async () => {
    for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
  })

  /** A broadcast in this state. */
  const given = async (state: string, namesUsers: boolean) => {
    const users = namesUsers ? [idOf(state === "finished" ? "nobody" : "user0")] : []
    const to = { channels: state === "finished" ? silent : heard, users }
    const at = new Date(Date.now() + 3_600_000).toISOString()
    const body = { data: { n: 1 }, to, ...(state === "scheduled" ? { at } : {}) }
    const id = await publishAt(service.url, "/broadcasts", body)
    if (state === "paused" || state === "cancelled") await patchState(service.url, id, state)
    await untilShown(service.url, id, (broadcast) => broadcast?.state === state)
    return id
  }
  const stateOf = async (id: string) =>
    (await call(service.url, "GET", broadcastPath(id), "publisher")).body.data.state

  it.each(kinds)("belong to whoever may write all it goes to, $name", async ({ may, users }) => {
    const cases = states.flatMap((state) =>
      wanted.flatMap((then) => {
        const isRefused = impossible[state]?.includes(then) ?? false
        return turnsOf(may, isRefused).map((turns) => ({ isRefused, state, then, turns }))
      })
    )
    const all: Array<(typeof cases)[number] & { readonly id: string }> = []
    for (const each of cases) all.push({ ...each, id: await given(each.state, users) })
    await permitAll("revoke", "publisher")
    try {
      for (const { id, isRefused, state, then, turns } of all)
        for (const caller of turns) {
          const { body, status } = await patchState(service.url, id, then, caller)
          const expected = !may.includes(caller) ? 404 : isRefused ? 409 : 200
          assert.equal(status, expected, `${caller}: ${state} to ${then}: ${JSON.stringify(body)}`)
          assert.equal(await stateOf(id), status === 200 ? then : state)
        }
    } finally {
      await permitAll("grant", "publisher")
    }
  })
})
