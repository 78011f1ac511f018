// Secrets as lines of an environment file: new ones, those that are kept, and what must be set
// after a change of keys. The lines hold private keys.
import { randomBytes } from "node:crypto"
import * as Redacted from "effect/Redacted"
import { freshPair, freshUseridSecret } from "#secrets/file.ts"
import { currentKey, formatFormer, type KeySet } from "#secrets/key-set.ts"

/** Settings by their names. */
type Values = Readonly<Record<string, string>>

const linesOf = (values: Values): ReadonlyArray<string> =>
  Object.entries(values).map(([name, value]) => `${name}=${value}`)

const pairOf = ({ privateKey, publicKey }: ReturnType<typeof freshPair>): Values => ({
  BELLCAST_VAPID_PUBLIC_KEY: publicKey,
  BELLCAST_VAPID_PRIVATE_KEY: Redacted.value(privateKey)
})
const currentOf = (set: KeySet): Values => {
  const { privateKey, publicKey } = currentKey(set)
  return pairOf({ publicKey, privateKey: privateKey! })
}
const formerOf = (set: KeySet): Values => ({
  BELLCAST_VAPID_FORMER_KEYS: formatFormer(set.filter(({ state }) => state !== "current"))
})

/** Settings that belong together, under one comment. */
export interface Part {
  readonly comment: string
  readonly values: Values
}

/** New settings for a service beside an existing NATS. The operator completes the empty ones. */
export const newParts = (): ReadonlyArray<Part> => [
  {
    comment: "Made by `bellcast keys`. Without this pair every subscription made with it is lost.",
    values: pairOf(freshPair())
  },
  {
    comment: "The ids of users are made with it. Never change it.",
    values: { BELLCAST_USERID_HMAC_SECRET: freshUseridSecret() }
  },
  {
    comment: "mailto:... or https://...: where push services reach you. No start without it.",
    values: { BELLCAST_VAPID_SUBJECT: "" }
  },
  {
    comment: "Whose logins are believed (src/identity/README.md). No start without it.",
    values: { BELLCAST_AUTH_POLICIES: "" }
  },
  {
    comment: "Who may publish on every channel: <policy>:<id>, as GET /v1/ shows it.",
    values: { BELLCAST_CHANNEL_WRITE_PRINCIPALS: "" }
  },
  {
    comment: "The login of the NATS in compose.yaml; a NATS of your own has another.",
    values: { NATS_PASSWORD: randomBytes(32).toString("base64url") }
  }
]

/** The parts as lines of an environment file. */
export const textOf = (parts: ReadonlyArray<Part>): string =>
  parts.flatMap(({ comment, values }) => [`# ${comment}`, ...linesOf(values)]).join("\n")

/** Settings for another process beside the same NATS. Contain private keys. */
export const allLines = (set: KeySet, subject: string, useridSecret: string): string =>
  linesOf({
    ...currentOf(set),
    ...(set.length > 1 ? formerOf(set) : {}),
    BELLCAST_VAPID_SUBJECT: subject,
    BELLCAST_USERID_HMAC_SECRET: useridSecret
  }).join("\n")

/** Settings that differ between two sets of keys. */
export const changedLines = (before: KeySet, after: KeySet): ReadonlyArray<string> =>
  linesOf({
    ...(currentKey(after).publicKey === currentKey(before).publicKey ? {} : currentOf(after)),
    ...formerOf(after)
  })
