// The push services of a run: several origins, and the subscriptions that they know.
import { randomBytes } from "node:crypto"
import { type Device, type Model, takeArrival, takeReceipt } from "../model/model.ts"
import type { Random } from "../random.ts"
import { makeBrowser } from "./browser.ts"
import { type Origin, startOrigin } from "./origin.ts"

/** In every endpoint, so that a log that holds one is found. */
export const endpointMark = "zq9x-endpoint-"

export interface PushServices extends AsyncDisposable {
  readonly origins: ReadonlyArray<Origin>
  /** A browser that subscribed. */
  readonly newDevice: () => Device
  /** Every auth and p256dh there is, to look for in logs. */
  readonly secrets: ReadonlySet<string>
}

/** The subscription that a browser hands to a page. */
export const subscriptionOf = ({ browser: { auth, p256dh }, endpoint }: Device): object => ({
  endpoint,
  expirationTime: null,
  keys: { auth, p256dh }
})

export const startPushServices = async (
  model: Model,
  publicKey: string,
  random: Random,
  /** `h1` or `h2` for each origin. */
  protocols: ReadonlyArray<Origin["protocol"]>
): Promise<PushServices> => {
  const known = new Map<string, Device>()
  const secrets = new Set<string>()
  const origins = await Promise.all(
    protocols.map((protocol, i) =>
      startOrigin<Device>(`${protocol}-${i + 1}`, protocol, publicKey, {
        find: (path) => {
          const of = known.get(path)
          if (of === undefined) return undefined
          return { browser: of.browser, isGone: of.unsubscribedAt !== undefined, of }
        },
        arrived: (said, at) => takeArrival(model, said, at),
        received: (of, marker, receipt) => takeReceipt(model, marker, of, receipt),
        wrong: (what) => model.wrong.push(what)
      })
    )
  )
  return {
    origins,
    secrets,
    newDevice: () => {
      const browser = makeBrowser()
      const path = `/push/${endpointMark}${randomBytes(36).toString("base64url")}`
      const endpoint = `${random.pick(origins).origin}${path}`
      secrets.add(browser.auth).add(browser.p256dh)
      const device: Device = { browser, endpoint, owners: [] }
      known.set(path, device)
      return device
    },
    [Symbol.asyncDispose]: async () => {
      for (const origin of origins) await origin[Symbol.asyncDispose]()
    }
  }
}
