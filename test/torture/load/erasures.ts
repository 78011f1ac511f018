// Users who are erased for good: by themselves, by an operator, by an internal service, or by the
// command. Nobody of this name comes back.
import { operator as operatorName } from "../fleet/users.ts"
import { acknowledge, begin, isIn, type Model, type User } from "../model/model.ts"
import type { Random } from "../random.ts"
import type { Gateways } from "./gateways.ts"
import type { Operator } from "./operator.ts"

/** Erases one user, if there is one who may be. */
export type Erase = () => Promise<void>

export const makeErasures = (
  model: Model,
  gateways: Gateways,
  operator: Operator,
  random: Random,
  /** The cycle under way. */
  cycle: () => number
): Erase => {
  /**
   * Users of whom nothing may be left in LOG but broadcasts that others get, too. A broadcast under
   * way that names the user may end without, which the model cannot know. Grants stay, and whose a
   * contested browser is, LOG says after the cycle.
   */
  const candidates = (): ReadonlyArray<User> => {
    const now = [...model.broadcasts.values()].filter((one) => one.cycle === cycle())
    const named = new Set(now.flatMap(({ except, users }) => [...users, ...except]))
    const contested = new Set(model.contested.flat().map(({ user }) => user))
    return model.users.filter(
      (user) => !user.isBusy && !user.isGranted && !named.has(user) && !contested.has(user)
    )
  }

  const ways: ReadonlyArray<(user: User) => Promise<unknown>> = [
    ({ name }) => gateways.until({ method: "DELETE", path: "/", user: name }, [202]),
    ({ id }) => {
      const path = `/users/${encodeURIComponent(id)}`
      return gateways.until({ method: "DELETE", path, user: operatorName }, [202])
    },
    ({ id }) => gateways.until({ method: "NATS", path: "erase", body: { user: id } }, [200]),
    ({ id }) => operator(() => ["user", "erase", id])
  ]

  return async () => {
    const found = candidates()
    if (found.length === 0) return
    const user = random.pick(found)
    const way = random.pick(ways)
    // For good: nobody changes the user any more.
    user.isBusy = true
    user.erased = { ...begin(), cycle: cycle() }
    for (const one of user.subscriptions) one.removed ??= user.erased
    for (const channel of model.channels)
      if (isIn(user, channel)) user.memberships.get(channel)!.at(-1)!.left = user.erased
    await way(user)
    acknowledge(user.erased)
  }
}
