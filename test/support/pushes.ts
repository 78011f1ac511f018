// Pushes as `web-push` makes them, and wrong ones that it refuses to make.
import { createECDH, sign } from "node:crypto"
import ece from "http_ece"
import { Agent, request } from "undici"
import webPush from "web-push"
import type { SubscriptionJson } from "./user-agent.ts"

export const vapid = webPush.generateVAPIDKeys()
const vapidDetails = { subject: "mailto:ops@example.com", ...vapid }
export const text = '{"hello":"wörld"}'

export interface Push {
  readonly headers: Record<string, string>
  readonly body: Buffer | null
}

export const withHeader = (push: Push, name: string, value: string | undefined): Push => {
  const { [name]: _, ...headers } = push.headers
  return { ...push, headers: value === undefined ? headers : { ...headers, [name]: value } }
}

export const pushFor = (
  to: SubscriptionJson,
  payload: string | undefined = text,
  options: webPush.RequestOptions = {}
): Push => {
  const { headers, body } = webPush.generateRequestDetails(to, payload, {
    vapidDetails,
    TTL: 60,
    ...options
  })
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])
  // undici counts the bytes itself, and some tests change them.
  return withHeader({ headers: Object.fromEntries(named), body }, "content-length", undefined)
}

export const post = async (
  endpoint: string,
  { headers, body }: Push,
  dispatcher = new Agent(),
  timeoutMillis = 5000
) => {
  const sent = {
    method: "POST",
    headers,
    body,
    dispatcher,
    headersTimeout: timeoutMillis,
    bodyTimeout: timeoutMillis
  } as const
  const answer = await request(endpoint, sent)
  return { status: answer.statusCode, headers: answer.headers, body: answer.body }
}

export const flipped = (push: Push, at: number): Push => {
  const body = Buffer.from(push.body ?? [])
  body[body.length + at] = (body[body.length + at] ?? 0) ^ 1
  return { ...push, body }
}

interface Token {
  readonly aud: string
  readonly expiresInSeconds?: number
  readonly alg?: string
  readonly sub?: string
}

/** A VAPID header signed here, because web-push refuses to make wrong ones. */
export const forged = (
  { aud, expiresInSeconds = 60, alg = "ES256", sub = "mailto:ops@example.com" }: Token,
  keys = vapid
): string => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
  const exp = Math.floor(Date.now() / 1000) + expiresInSeconds
  const content = `${part({ typ: "JWT", alg })}.${part({ aud, exp, sub })}`
  const point = Buffer.from(keys.publicKey, "base64url")
  const [x, y] = [point.toString("base64url", 1, 33), point.toString("base64url", 33)]
  const key = {
    format: "jwk",
    key: { kty: "EC", crv: "P-256", x, y, d: keys.privateKey },
    dsaEncoding: "ieee-p1363"
  } as const
  const signature = sign("sha256", Buffer.from(content), key).toString("base64url")
  return `vapid t=${content}.${signature}, k=${keys.publicKey}`
}

/** A body whose sender key is the VAPID key itself. */
export const encryptedWithVapidKey = ({ keys: { p256dh, auth } }: SubscriptionJson): Buffer => {
  const privateKey = createECDH("prime256v1")
  privateKey.setPrivateKey(vapid.privateKey, "base64url")
  const params = {
    version: "aes128gcm",
    privateKey,
    dh: Buffer.from(p256dh, "base64url"),
    authSecret: Buffer.from(auth, "base64url")
  } as const
  return ece.encrypt(Buffer.from(text), params)
}
