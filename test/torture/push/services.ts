// The push services of a run: several origins, and the subscriptions that they know.
import { randomBytes } from "node:crypto"
import { type Model, type Subscription, takeReceipt } from "../model/model.ts"
import type { Random } from "../random.ts"
import { type Browser, makeBrowser } from "./browser.ts"
import { type Origin, startOrigin } from "./origin.ts"

/** In every endpoint, so that a log that holds one is found. */
export const endpointMark = "zq9x-endpoint-"

export interface PushServices extends AsyncDisposable {
  readonly origins: ReadonlyArray<Origin>
  /** What a browser would hand to a page; not known to its push service before `register`. */
  readonly newSubscription: () => {
    readonly browser: Browser
    readonly endpoint: string
    readonly json: object
  }
  readonly register: (subscription: Subscription) => void
  /** Every auth and p256dh there is, to look for in logs. */
  readonly secrets: ReadonlySet<string>
}

export const startPushServices = async (
  model: Model,
  publicKey: string,
  random: Random,
  /** `h1` or `h2` for each origin. */
  protocols: ReadonlyArray<Origin["protocol"]>
): Promise<PushServices> => {
  const known = new Map<string, Subscription>()
  const secrets = new Set<string>()
  const origins = await Promise.all(
    protocols.map((protocol, i) =>
      startOrigin<Subscription>(`${protocol}-${i + 1}`, protocol, publicKey, {
        find: (path) => {
          const of = known.get(path)
          if (of === undefined) return undefined
          return { browser: of.browser, isGone: of.unsubscribedAt !== undefined, of }
        },
        received: (of, marker, receipt) => takeReceipt(model, marker, of, receipt),
        wrong: (what) => model.wrong.push(what)
      })
    )
  )
  return {
    origins,
    secrets,
    newSubscription: () => {
      const browser = makeBrowser()
      const path = `/push/${endpointMark}${randomBytes(36).toString("base64url")}`
      const endpoint = `${random.pick(origins).origin}${path}`
      const { auth, p256dh } = browser
      secrets.add(auth).add(p256dh)
      return { browser, endpoint, json: { endpoint, expirationTime: null, keys: { auth, p256dh } } }
    },
    register: (subscription) => {
      known.set(new URL(subscription.endpoint).pathname, subscription)
    },
    [Symbol.asyncDispose]: async () => {
      for (const origin of origins) await origin[Symbol.asyncDispose]()
    }
  }
}
