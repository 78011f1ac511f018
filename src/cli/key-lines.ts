// Secrets as lines of an environment file: new ones, those that are kept, and what a change of keys leaves to set. They hold private keys.
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

/** What a service beside an existing NATS begins with. */
export const newLines = (): string =>
  [
    "# Made by `bellcast keys`. Whoever loses these loses every subscription made with them. The subject, mailto:... or https://..., is where push",
    "# services reach you; a service does not start without.",
    ...pairLines(freshPair()),
    ...otherLines("", freshUseridSecret()),
    "BELLCAST_CHANNEL_WRITE_PRINCIPALS="
  ].join("\n")

/** What a process beside the same NATS must be set to. The set has private keys. */
export const allLines = (set: KeySet, subject: string, useridSecret: string): string =>
  [
    ...currentLines(set),
    ...(set.length > 1 ? [formerLine(set)] : []),
    ...otherLines(subject, useridSecret)
  ].join("\n")

/** What is to be set anew when one set has become another. */
export const changedLines = (before: KeySet, after: KeySet): ReadonlyArray<string> => [
  ...(currentKey(after).publicKey === currentKey(before).publicKey ? [] : currentLines(after)),
  formerLine(after)
]
