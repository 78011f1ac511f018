// Changes of the audience: users come, subscribe, register, leave, and take over the browsers of
// others; an internal service registers them, too. A change is repeated until it is
// acknowledged, so that after a cycle the model knows the state of each.
import { createHmac } from "node:crypto"
import { useridSecret } from "../fleet/fleet.ts"
import type { Change, Device, Model, Subscription, User } from "../model/model.ts"
import { isIn } from "../model/model.ts"
import { type PushServices, subscriptionOf } from "../push/services.ts"
import type { Random } from "../random.ts"
import type { Gateways } from "./gateways.ts"
import { password } from "./http.ts"

export interface Changes {
  /** A new user with so many subscriptions, registered on some channels. */
  readonly arrive: (subscriptions: number, channels: ReadonlyArray<string>) => Promise<void>
  /** One change of one user, drawn from the random numbers. */
  readonly churn: () => Promise<void>
}

/** Users who are likely to change again. */
const recentMax = 8

/** Ids and pseudonyms, as src/identity/README.md describes them. */
const hmac = (key: string, text: string) => createHmac("sha256", key).update(text)
const idOf = (name: string) =>
  `basicauth:${hmac(useridSecret, `${name}:${password}`).digest("hex")}`
const pseudonymOf = (id: string) =>
  hmac(hmac(useridSecret, "bellcast pseudonym").digest("hex"), id).digest("base64url").slice(0, 22)

const liveOf = ({ subscriptions }: User) =>
  subscriptions.filter(({ removed }) => removed === undefined)

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

  const subscribe = async (user: User, device: Device = push.newDevice()) => {
    const subscription: Subscription = { user, device, stored: begin() }
    const former = device.owners.at(-1)
    if (former !== undefined) former.removed = subscription.stored
    user.subscriptions.push(subscription)
    device.owners.push(subscription)
    const body = { data: subscriptionOf(device) }
    const asked = { method: "POST", path: "/subscriptions", user: user.name, body }
    const response = await gateways.until(asked, [200, 201])
    subscription.id = response?.body.data.id
    acknowledge(subscription.stored)
  }

  /** Stores a subscription of another user: the browser is this user's from then on. */
  const takeOver = async (user: User) => {
    const other = random.pick(model.users)
    const devices = liveOf(other).map(({ device }) => device)
    const fresh = devices.filter(({ owners }) => owners.every((one) => one.user !== user))
    if (other.isBusy || fresh.length === 0) return
    other.isBusy = true
    await subscribe(user, random.pick(fresh))
    other.isBusy = false
  }

  const unsubscribe = async (subscription: Subscription) => {
    subscription.removed = begin()
    const path = `/subscriptions/${subscription.id}`
    // 404: an earlier attempt removed it, or a push service called it gone.
    await gateways.until({ method: "DELETE", path, user: subscription.user.name }, [200, 404])
    acknowledge(subscription.removed)
  }

  /** Registers or leaves, as the user or as an internal service on NATS. */
  const registration = async (method: "PUT" | "DELETE", user: User, channel: string) => {
    const path = `/channels/${encodeURIComponent(channel)}/registration`
    const operation = method === "PUT" ? "member-put" : "member-delete"
    const asked = random.chance(0.3)
      ? { method: "NATS", path: operation, body: { channel, user: user.id } }
      : { method, path, user: user.name }
    await gateways.until(asked, [200, 202])
  }

  const register = async (user: User, channel: string) => {
    const membership = { joined: begin() }
    user.memberships.set(channel, [...(user.memberships.get(channel) ?? []), membership])
    await registration("PUT", user, channel)
    acknowledge(membership.joined)
  }

  const leave = async (user: User, channel: string) => {
    const membership = user.memberships.get(channel)!.at(-1)!
    membership.left = begin()
    await registration("DELETE", user, channel)
    acknowledge(membership.left)
  }

  const arrive: Changes["arrive"] = async (subscriptions, channels) => {
    const name = `${runName}-user-${users++}`
    const id = idOf(name)
    const user: User = {
      name,
      id,
      pseudonym: pseudonymOf(id),
      subscriptions: [],
      memberships: new Map(),
      isBusy: true
    }
    model.users.push(user)
    for (let i = 0; i < subscriptions; i++) await subscribe(user)
    for (const channel of new Set(channels)) await register(user, channel)
    user.isBusy = false
  }

  const change = async (user: User) => {
    const channel = random.pick(model.channels)
    const live = liveOf(user)
    const kind = random.next()
    if (kind < 0.35) return isIn(user, channel) ? leave(user, channel) : register(user, channel)
    if (kind < 0.5 && live.length > 0) return unsubscribe(random.pick(live))
    if (kind < 0.6 && live.length > 0) {
      // The browser tells its push service only; the service learns it from a 410.
      random.pick(live).device.unsubscribedAt ??= performance.now()
      return
    }
    if (live.length >= 6) return
    return kind < 0.8 ? takeOver(user) : subscribe(user)
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
