// Changes of the audience: users come, subscribe, register, leave. A change is repeated until it is
// acknowledged, so that after a cycle the model knows the state of each.
import type { Change, Model, Subscription, User } from "../model/model.ts"
import { isIn } from "../model/model.ts"
import type { PushServices } from "../push/services.ts"
import type { Random } from "../random.ts"
import type { Gateways } from "./gateways.ts"

export interface Changes {
  /** A new user with so many subscriptions, registered on some channels. */
  readonly arrive: (subscriptions: number, channels: ReadonlyArray<string>) => Promise<void>
  /** One change of one user, drawn from the random numbers. */
  readonly churn: () => Promise<void>
}

/** Users who are likely to change again. */
const recentMax = 8

const begin = (): Change => ({ startedAt: performance.now() })
const acknowledge = (change: Change) => {
  change.ackedAt = performance.now()
}

export const makeChanges = (
  model: Model,
  gateways: Gateways,
  push: PushServices,
  random: Random,
  runName: string
): Changes => {
  // A user who registered twice for a channel would leave the first registration behind in the
  // model.
  const [everyone, ...others] = model.channels as readonly [string, ...Array<string>]
  let users = 0
  // Some users change again within seconds: a late write of an old value then shows.
  let recent: ReadonlyArray<User> = []

  const subscribe = async (user: User) => {
    const { browser, endpoint, json } = push.newSubscription()
    const subscription: Subscription = { user, browser, endpoint, stored: begin() }
    user.subscriptions.push(subscription)
    push.register(subscription)
    const asked = { method: "POST", path: "/subscriptions", user: user.name, body: { data: json } }
    const response = await gateways.until(asked, [200, 201])
    subscription.id = response?.body.data.id
    acknowledge(subscription.stored)
  }

  const unsubscribe = async (subscription: Subscription) => {
    subscription.removed = begin()
    const path = `/subscriptions/${subscription.id}`
    // 404: an earlier attempt removed it, or a push service called it gone.
    await gateways.until({ method: "DELETE", path, user: subscription.user.name }, [200, 404])
    acknowledge(subscription.removed)
  }

  const registration = (channel: string) => `/channels/${encodeURIComponent(channel)}/registration`

  const register = async (user: User, channel: string) => {
    const membership = { joined: begin() }
    user.memberships.set(channel, [...(user.memberships.get(channel) ?? []), membership])
    const asked = { method: "PUT", path: registration(channel), user: user.name }
    await gateways.until(asked, [202])
    acknowledge(membership.joined)
  }

  const leave = async (user: User, channel: string) => {
    const membership = user.memberships.get(channel)!.at(-1)!
    membership.left = begin()
    const asked = { method: "DELETE", path: registration(channel), user: user.name }
    await gateways.until(asked, [202])
    acknowledge(membership.left)
  }

  const arrive: Changes["arrive"] = async (subscriptions, channels) => {
    const name = `${runName}-user-${users++}`
    const user: User = { name, subscriptions: [], memberships: new Map(), isBusy: true }
    model.users.push(user)
    for (let i = 0; i < subscriptions; i++) await subscribe(user)
    for (const channel of new Set(channels)) await register(user, channel)
    user.isBusy = false
  }

  const change = async (user: User) => {
    const channel = random.pick(model.channels)
    const live = user.subscriptions.filter(({ removed }) => removed === undefined)
    const kind = random.next()
    if (kind < 0.35) return isIn(user, channel) ? leave(user, channel) : register(user, channel)
    if (kind < 0.55 && live.length > 0) return unsubscribe(random.pick(live))
    if (kind < 0.65 && live.length > 0) {
      // The browser tells its push service only; the service learns it from a 410.
      random.pick(live).unsubscribedAt ??= performance.now()
      return
    }
    return live.length < 6 ? subscribe(user) : undefined
  }

  return {
    arrive,
    churn: async () => {
      if (random.chance(0.2)) return arrive(random.between(1, 3), [random.pick(others), everyone])
      const user = random.pick(recent.length > 0 && random.chance(0.4) ? recent : model.users)
      if (user.isBusy) return
      recent = [user, ...recent].slice(0, recentMax)
      user.isBusy = true
      await change(user)
      user.isBusy = false
    }
  }
}
