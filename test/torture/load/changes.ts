// Changes of the audience: users come, subscribe, register, leave, and take over the browsers of
// others; an internal service registers them, too. A change is repeated until it is
// acknowledged, so that after a cycle the model knows the state of each.
import { closedChannel } from "../fleet/fleet.ts"
import { idOf, pseudonymOf } from "../fleet/users.ts"
import type { Device, Membership, Model, Subscription, User } from "../model/model.ts"
import { acknowledge, begin, isIn } from "../model/model.ts"
import { type PushServices, subscriptionOf } from "../push/services.ts"
import type { Random } from "../random.ts"
import type { Gateways } from "./gateways.ts"
import type { Operator } from "./operator.ts"
import { addSubscription, makeRenewals, preferRenewal } from "./renewals.ts"
import { makeSquatters } from "./squatters.ts"

export interface Changes {
  /** A new user with so many subscriptions, registered on some channels. */
  readonly arrive: (subscriptions: number, channels: ReadonlyArray<string>) => Promise<void>
  /** One change of one user, drawn from the random numbers. */
  readonly churn: () => Promise<void>
}

/** Users who are likely to change again. */
const recentMax = 8

const liveOf = ({ subscriptions }: User) =>
  subscriptions.filter(({ removed }) => removed === undefined)

export const makeChanges = (
  model: Model,
  gateways: Gateways,
  push: PushServices,
  operator: Operator,
  random: Random,
  runName: string
): Changes => {
  // A user who registered twice for a channel would leave the first registration behind in the
  // model.
  const [everyone, ...others] = model.channels as readonly [string, ...Array<string>]
  const squat = makeSquatters(model, gateways, random)
  const renew = makeRenewals(model, gateways, push, random)
  let users = 0
  // Some users change again within seconds: a late write of an old value then shows.
  let recent: ReadonlyArray<User> = []

  /** True: no attempt that had no response can be done later. */
  const store = async (subscription: Subscription): Promise<boolean> => {
    const { device, user } = subscription
    const headers = random.chance(0.5) ? preferRenewal : {}
    const body = { data: subscriptionOf(device) }
    const asked = { method: "POST", path: "/subscriptions", user: user.name, body, headers }
    const response = await gateways.until(asked, [200, 201])
    if (response?.isRepeated === false) subscription.secret = response.body.renewal
    acknowledge(subscription.stored)
    return response?.isRepeated === false
  }

  const subscribe = async (user: User, device: Device = push.newDevice()) => {
    const former = device.owners.at(-1)
    const subscription = addSubscription(user, device)
    if (former !== undefined) former.removed = subscription.stored
    await store(subscription)
  }

  /** Two users store the browser of a third at the same moment: whose it is then, LOG says. */
  const contest = async (users: ReadonlyArray<User>, device: Device) => {
    const former = device.owners.at(-1)!
    const rivals = users.map((user) => addSubscription(user, device))
    former.removed = begin()
    // Until the checks of the cycle, neither counts as the owner.
    for (const rival of rivals) rival.removed = begin()
    const areCertain = (await Promise.all(rivals.map(store))).every(Boolean)
    for (const { removed } of rivals) if (areCertain) acknowledge(removed!)
    acknowledge(former.removed)
    model.contested.push(rivals)
  }

  /** Stores a subscription of another user: the browser is this user's from then on. */
  const takeOver = async (user: User) => {
    const [other, rival] = [random.pick(model.users), random.pick(model.users)]
    const devices = liveOf(other).map(({ device }) => device)
    const isNew = ({ owners }: Device, to: User) => owners.every((one) => one.user !== to)
    const fresh = devices.filter((device) => isNew(device, user))
    if (other.isBusy || fresh.length === 0) return
    const device = random.pick(fresh)
    other.isBusy = true
    if (rival.isBusy || !isNew(device, rival) || random.chance(0.5)) await subscribe(user, device)
    else {
      rival.isBusy = true
      await contest([user, rival], device)
      rival.isBusy = false
    }
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
    const isClosed = method === "PUT" && channel === closedChannel
    const asked =
      isClosed || random.chance(0.3)
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

  /** Registers by a grant, which ends again, half the time together with the registration. */
  const visit = async (user: User) => {
    const path = `/channels/${closedChannel}/registration`
    const asked = { method: "PUT", path, user: user.name }
    const grant = [closedChannel, user.id, "--register"]
    const membership: Membership = { joined: begin() }
    user.isGranted = true
    await operator(() => ["permissions", "grant", ...grant])
    user.memberships.set(closedChannel, [
      ...(user.memberships.get(closedChannel) ?? []),
      membership
    ])
    await gateways.until(asked, [202])
    acknowledge(membership.joined)
    if (random.chance(0.5)) {
      membership.left = begin()
      await operator(() => ["permissions", "revoke", ...grant, "--remove"])
      acknowledge(membership.left)
    } else await operator(() => ["permissions", "revoke", ...grant])
    await gateways.once(asked, [403])
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
      isBusy: true,
      isGranted: false
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
    if (kind < 0.02 && !isIn(user, closedChannel)) return visit(user)
    if (kind < 0.35) return isIn(user, channel) ? leave(user, channel) : register(user, channel)
    if (kind < 0.45 && live.length > 0) return unsubscribe(random.pick(live))
    if (kind < 0.55 && live.length > 0) {
      // The browser tells its push service only; the service learns it from a 410.
      random.pick(live).device.unsubscribedAt ??= performance.now()
      return
    }
    if (kind < 0.63) return squat(user)
    if (kind < 0.8) return renew(user)
    if (live.length >= 6) return
    return kind < 0.9 ? takeOver(user) : subscribe(user)
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
