// Secrets as lines of an environment file: new ones, those that are kept, and what must be set
// after a change of keys. The lines hold private keys.
import { randomBytes } from "node:crypto"
import { Redacted } from "effect"
import { freshPair, freshUseridSecret } from "#secrets/file.ts"
import { currentKey, formatFormer, type KeySet } from "#secrets/key-set.ts"

type Pair = ReturnType<typeof freshPair>

const pairLines = ({ privateKey, publicKey }: Pair): ReadonlyArray<string> => [
  `BELLCAST_VAPID_PUBLIC_KEY=${publicKey}`,
  `BELLCAST_VAPID_PRIVATE_KEY=${Redacted.value(privateKey)}`
]
const currentLines = (set: KeySet) => {
  const { privateKey, publicKey } = currentKey(set)
  return pairLines({ publicKey, privateKey: privateKey! })
}
const formerLine = (set: KeySet) =>
  `BELLCAST_VAPID_FORMER_KEYS=${formatFormer(set.filter(({ state }) => state !== "current"))}`
const otherLines = (subject: string, useridSecret: string): ReadonlyArray<string> => [
  `BELLCAST_VAPID_SUBJECT=${subject}`,
  `BELLCAST_USERID_HMAC_SECRET=${useridSecret}`
]

/** Settings that belong together, under one comment. */
export interface Part {
  readonly comment: string
  readonly values: Readonly<Record<string, string>>
}

/** New settings for a service beside an existing NATS. The operator completes the empty ones. */
export const newParts = (): ReadonlyArray<Part> => {
  const { privateKey, publicKey } = freshPair()
  return [
    {
      comment:
        "Made by `bellcast keys`. Without this pair every subscription made with it is lost.",
      values: {
        BELLCAST_VAPID_PUBLIC_KEY: publicKey,
        BELLCAST_VAPID_PRIVATE_KEY: Redacted.value(privateKey)
      }
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
}

/** The parts as lines of an environment file. */
export const textOf = (parts: ReadonlyArray<Part>): string =>
  parts
    .flatMap(({ comment, values }) => [
      `# ${comment}`,
      ...Object.entries(values).map(([name, value]) => `${name}=${value}`)
    ])
    .join("\n")

/** Settings for another process beside the same NATS. Contain private keys. */
export const allLines = (set: KeySet, subject: string, useridSecret: string): string =>
  [
    ...currentLines(set),
    ...(set.length > 1 ? [formerLine(set)] : []),
    ...otherLines(subject, useridSecret)
  ].join("\n")

/** Settings that differ between two sets of keys. */
export const changedLines = (before: KeySet, after: KeySet): ReadonlyArray<string> => [
  ...(currentKey(after).publicKey === currentKey(before).publicKey ? [] : currentLines(after)),
  formerLine(after)
]
