// Renewals without a login: a browser that has another subscription sends the secret of the former
// one. A secret is also sent by two browsers at once, again after a lost response, and when it is
// spent or void.
import { hash } from "node:crypto"
import { renewableMillis } from "../fleet/days.ts"
import {
  acknowledge,
  begin,
  type Change,
  type Device,
  type Model,
  type Subscription,
  type User
} from "../model/model.ts"
import { type PushServices, subscriptionOf } from "../push/services.ts"
import type { Random } from "../random.ts"
import type { Gateways } from "./gateways.ts"

export const preferRenewal = { prefer: "renewal" }

/** A subscription that is being stored. Section 3.1 of the contract defines the id. */
export const addSubscription = (user: User, device: Device): Subscription => {
  const id = hash("sha256", JSON.stringify(device.endpoint))
  const subscription: Subscription = { user, device, id, stored: begin(), heirs: [] }
  user.subscriptions.push(subscription)
  device.owners.push(subscription)
  return subscription
}

/** The removal of a subscription that was refused: no broadcast may reach it. */
const refused: Change = { startedAt: 0, ackedAt: 0 }

/**
 * A secret is sent for so long after a push service ended the subscription. The secret is valid
 * for longer, as faults may hold the request up.
 */
const usableMillis = renewableMillis / 3

/** Whether it is certain that a secret is valid, or that it is not. */
const isCertain = ({ device: { goneAt }, removed }: Subscription): boolean =>
  goneAt === undefined || (removed === undefined && performance.now() - goneAt < usableMillis)

/** Returns an act that sends the secret of a subscription of a user, if there is one. */
export const makeRenewals = (
  model: Model,
  gateways: Gateways,
  push: PushServices,
  random: Random
) => {
  const replace = async ({ secret: renewal }: Subscription, { device }: Subscription) => {
    const body = { renewal, data: subscriptionOf(device) }
    const asked = { method: "POST", path: "/subscriptions/replace", body }
    return (await gateways.until(asked, [200, 201, 403]))!
  }

  /** Sends a secret for new browsers at once. `accepted`: how many must be. */
  const spend = async (former: Subscription, browsers: number, accepted: 0 | 1) => {
    const heirs = Array.from({ length: browsers }, () =>
      addSubscription(former.user, push.newDevice())
    )
    former.heirs.push(...heirs)
    const responses = await Promise.all(heirs.map((heir) => replace(former, heir)))
    for (const { stored } of heirs) acknowledge(stored)
    const won = heirs.filter((_, i) => responses[i]!.status !== 403)
    for (const heir of heirs) if (!won.includes(heir)) heir.removed = refused
    if (won.length !== accepted)
      model.wrong.push(`renewal: ${won.length} browsers accepted by one secret, not ${accepted}`)
    const response = responses.find(({ status }) => status !== 403)
    if (response?.isRepeated === false) won[0]!.secret = response.body.renewal
    return won[0]
  }

  /** Repeats a renewal whose secret is unused, as if the response was lost. */
  const repeat = async (former: Subscription, heir: Subscription) => {
    const { body, isRepeated, status } = await replace(former, heir)
    if (status !== 200) model.wrong.push(`renewal: ${status} when repeated`)
    if (isRepeated || status !== 200) delete heir.secret
    else heir.secret = body.renewal
  }

  const renew = async (former: Subscription) => {
    // The push service may have ended the subscription before, during or after the renewal.
    if (random.chance(0.5)) former.device.unsubscribedAt ??= performance.now()
    former.removed = begin()
    const heir = await spend(former, random.chance(0.3) ? 2 : 1, 1)
    acknowledge(former.removed)
    if (heir?.secret !== undefined && random.chance(0.3)) await repeat(former, heir)
    if (random.chance(0.3)) await spend(former, 1, 0)
  }

  return async ({ subscriptions }: User): Promise<void> => {
    // Whose a contested browser is, and so whether its secret is valid, LOG says after the cycle.
    const contested = new Set(model.contested.flat())
    const known = subscriptions.filter(
      (each) => each.secret !== undefined && !contested.has(each) && isCertain(each)
    )
    if (known.length === 0) return
    const former = random.pick(known)
    if (former.removed === undefined) await renew(former)
    else await spend(former, 1, 0)
  }
}
