// VAPID (RFC 8292): who we are to push services. One token per origin, reused: section 5 asks for it, and Apple refuses a new one within the hour.
import { Clock, Context, Effect, Layer, Random, Redacted } from "effect"
import webpush from "web-push"

export interface VapidKeyPair {
  /** The application server key browsers subscribe with: 65 bytes, base64url. */
  readonly publicKey: string
  readonly privateKey: Redacted.Redacted<string>
  /** mailto: or https: */
  readonly subject: string
}

/** Clocks differ by hours in the field, so not the 24 h that section 2 allows. */
const lifeMillis = 12 * 60 * 60_000
const renewMillis = 6 * 60 * 60_000
/** More origins than this are not push services but somebody playing; then tokens are made anew. */
const originsMax = 1_000

export class VapidKeys extends Context.Service<VapidKeys, VapidKeyPair>()("bellcast/delivery/VapidKeys") {}

export class Vapid extends Context.Service<
  Vapid,
  {
    /** The Authorization header for an origin. It is a credential: never log it. */
    readonly authorization: (origin: string) => Effect.Effect<string>
    /** Another one than `refused`: signed anew, unless that has been done since. */
    readonly renewed: (origin: string, refused: string) => Effect.Effect<string>
  }
>()("bellcast/delivery/Vapid") {
  static readonly layer = Layer.effect(
    Vapid,
    Effect.gen(function* () {
      const { privateKey, publicKey, subject } = yield* VapidKeys
      const tokens = new Map<string, { readonly header: string; readonly renewAt: number }>()
      const authorization = Effect.fnUntraced(function* (origin: string) {
        const now = yield* Clock.currentTimeMillis
        const known = tokens.get(origin)
        if (known !== undefined && now < known.renewAt) return known.header
        const exp = Math.floor((now + lifeMillis) / 1000)
        const header = webpush.getVapidHeaders(origin, subject, publicKey, Redacted.value(privateKey), "aes128gcm", exp).Authorization
        if (tokens.size >= originsMax) tokens.clear()
        // Spread, so that many workers do not all renew in the same minute.
        tokens.set(origin, { header, renewAt: now + renewMillis * (0.9 + (yield* Random.next) / 10) })
        return header
      })
      const renewed = (origin: string, refused: string) =>
        Effect.suspend(() => {
          if (tokens.get(origin)?.header === refused) tokens.delete(origin)
          return authorization(origin)
        })
      return Vapid.of({ authorization, renewed })
    })
  )
}
