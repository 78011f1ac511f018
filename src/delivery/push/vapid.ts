// VAPID (RFC 8292): who we are to push services. A subscription takes only pushes signed with the key it was made with (section 4.2), so there is a
// set of keys. One token per origin and key, reused: section 5 asks for it, and Apple refuses a new one within the hour.
import { Clock, Context, Effect, Layer, Random, Redacted } from "effect"
import webpush from "web-push"

export interface SigningKey {
  /** The application server key browsers subscribe with: 65 bytes, base64url. */
  readonly publicKey: string
  /** Undefined: the key is retired, nothing is signed with it any more. */
  readonly privateKey: Redacted.Redacted<string> | undefined
}

/** Clocks differ by hours in the field, so not the 24 h that section 2 allows. */
const lifeMillis = 12 * 60 * 60_000
const renewMillis = 6 * 60 * 60_000
/** More origins than this are not push services but somebody playing; then tokens are made anew. */
const tokensMax = 1_000

export class VapidKeys extends Context.Service<
  VapidKeys,
  {
    /** Oldest first. */
    readonly keys: ReadonlyArray<SigningKey>
    /** mailto: or https: */
    readonly subject: string
  }
>()("bellcast/delivery/VapidKeys") {}

export class Vapid extends Context.Service<
  Vapid,
  {
    /** The public key a subscription was made with. Where none was noted it is the oldest: keys have been noted since before there was a second one. */
    readonly keyOf: (subscription: { readonly vapidKey?: string }) => string
    /** Why nothing can be signed with a key: retired, or not in this process's set. Undefined: it can. */
    readonly fault: (publicKey: string) => "retired" | "unknown" | undefined
    /** The keys to try where a push service says that a subscription was made with another than this, the likeliest first: its forerunners. */
    readonly othersThan: (publicKey: string) => ReadonlyArray<string>
    /** The Authorization header for an origin. It is a credential: never log it. Dies when {@link fault} has something against the key. */
    readonly authorization: (origin: string, publicKey: string) => Effect.Effect<string>
    /** Another one than `refused`: signed anew, unless that has been done since. */
    readonly renewed: (origin: string, publicKey: string, refused: string) => Effect.Effect<string>
  }
>()("bellcast/delivery/Vapid") {
  static readonly layer = Layer.effect(
    Vapid,
    Effect.gen(function* () {
      const { keys, subject } = yield* VapidKeys
      const privateKeys = new Map(keys.map(({ privateKey, publicKey }) => [publicKey, privateKey]))
      const signing = keys
        .filter(({ privateKey }) => privateKey !== undefined)
        .map(({ publicKey }) => publicKey)
      const tokens = new Map<string, { readonly header: string; readonly renewAt: number }>()
      const nameOf = (origin: string, publicKey: string) => `${publicKey} ${origin}`

      const authorization = Effect.fnUntraced(function* (origin: string, publicKey: string) {
        const now = yield* Clock.currentTimeMillis
        const name = nameOf(origin, publicKey)
        const known = tokens.get(name)
        if (known !== undefined && now < known.renewAt) return known.header
        const exp = Math.floor((now + lifeMillis) / 1000)
        const privateKey = Redacted.value(privateKeys.get(publicKey)!)
        const header = webpush.getVapidHeaders(
          origin,
          subject,
          publicKey,
          privateKey,
          "aes128gcm",
          exp
        ).Authorization
        if (tokens.size >= tokensMax) tokens.clear()
        // Spread, so that many workers do not all renew in the same minute.
        tokens.set(name, { header, renewAt: now + renewMillis * (0.9 + (yield* Random.next) / 10) })
        return header
      })

      return Vapid.of({
        authorization,
        keyOf: ({ vapidKey }) => vapidKey ?? keys[0]!.publicKey,
        fault: (publicKey) =>
          privateKeys.has(publicKey)
            ? privateKeys.get(publicKey) === undefined
              ? "retired"
              : undefined
            : "unknown",
        othersThan: (publicKey) => {
          const i = signing.indexOf(publicKey)
          return [...signing.slice(0, i).reverse(), ...signing.slice(i + 1)]
        },
        renewed: (origin, publicKey, refused) =>
          Effect.suspend(() => {
            const name = nameOf(origin, publicKey)
            if (tokens.get(name)?.header === refused) tokens.delete(name)
            return authorization(origin, publicKey)
          })
      })
    })
  )
}
