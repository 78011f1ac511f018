// Users who store the endpoint of another user's browser with keys of their own: each is refused,
// and nothing changes. They are no users of the model, so no broadcast names them.
import { hash } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { idOf, pseudonymOf } from "../fleet/users.ts"
import type { Model, User } from "../model/model.ts"
import { makeBrowser } from "../push/browser.ts"
import { subscriptionOf } from "../push/services.ts"
import type { Random } from "../random.ts"
import type { Gateways } from "./gateways.ts"
import type { Request } from "./http.ts"

const heldByAnother = 123
const pauseMillis = 300

export const makeSquatters = (model: Model, gateways: Gateways, random: Random) => {
  let count = 0

  /** Repeats until it is decided. Returns whether the endpoint is the squatter's now. */
  const isTaken = async (asked: Request): Promise<boolean> => {
    while (true) {
      // 201 is judged below.
      const { body, status } = await gateways.once(asked, [201])
      if (status === 201) return true
      if (status === 409 && body?.errno === heldByAnother) return false
      await sleep(pauseMillis)
    }
  }

  /** Tries to take a browser of this user, whom nobody changes meanwhile. */
  return async ({ subscriptions }: User): Promise<void> => {
    const held = subscriptions.filter(
      ({ device, removed, stored }) =>
        removed === undefined &&
        stored.ackedAt !== undefined &&
        device.goneAt === undefined &&
        device.unsubscribedAt === undefined
    )
    if (held.length === 0) return
    const { device } = random.pick(held)
    const user = `squatter-${count++}`
    const id = hash("sha256", JSON.stringify(device.endpoint))
    const data = subscriptionOf({ ...device, browser: makeBrowser() })
    const [method, path] = random.pick([
      ["POST", "/subscriptions"],
      ["PUT", `/subscriptions/${id}`]
    ] as const)
    if (!(await isTaken({ method, path, user, body: { data } })))
      return void model.squatted.add(`${pseudonymOf(idOf(user))}.${id}`)
    // A push service may have called it gone meanwhile: then it is nobody's.
    if (device.goneAt === undefined) model.wrong.push(`${method}: a squatter got a held endpoint`)
    const remove = { method: "DELETE", path: `/subscriptions/${id}`, user }
    await gateways.until(remove, [200, 404])
  }
}
