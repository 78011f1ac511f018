// Which secret user ids are made with, as LOG knows it: under another one every user would be a stranger, and what they write would be somebody else's.
import { Clock, Effect, Redacted } from "effect"
import { hmacSha256 } from "#identity/hmac.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { SecretsFault } from "./file.ts"

/** Tells one secret from another and nothing else of it: a user id tells as much. */
const fingerprintOf = (secret: Redacted.Redacted<string>): string =>
  hmacSha256(Redacted.value(secret))("bellcast userid secret", "base64url").slice(0, 22)

const refusal =
  "BELLCAST_USERID_HMAC_SECRET is not the one that this NATS was used with before: nobody would find their subscriptions again. Set the former one " +
  "(beside an embedded server it is in secrets.json), or give up all users of before: `bellcast keys forget-users --force`."

const adopted = Effect.gen(function* () {
  const log = yield* EventLog
  const stored = yield* log.last("log", subjects.useridSecret)
  return {
    seq: stored?.seq ?? 0,
    fingerprint:
      stored?.message.type === "userid-secret.adopted/1" ? stored.message.fingerprint : ""
  }
})

const write = Effect.fnUntraced(function* (fingerprint: string, expect: number) {
  const log = yield* EventLog
  const body = { fingerprint, at: yield* Clock.currentTimeMillis }
  yield* log.append("log", {
    subject: subjects.useridSecret,
    type: "userid-secret.adopted/1",
    body,
    expect
  })
})

/** Writes down which secret user ids are made with, the first time. Fails with SecretsFault when it was another one. */
export const adoptUseridSecret = Effect.fnUntraced(
  function* (secret: Redacted.Redacted<string>) {
    const fingerprint = fingerprintOf(secret)
    const known = yield* adopted
    if (known.fingerprint === fingerprint) return
    if (known.fingerprint !== "") return yield* new SecretsFault({ message: refusal })
    yield* write(fingerprint, known.seq)
  },
  Effect.retry({ times: 3, while: ({ _tag }) => _tag === "AppendConflict" })
)

/** Lets the next start come with another secret: whoever was a user under the former one is a stranger then. */
export const forgetUseridSecret = Effect.flatMap(adopted, ({ seq }) => write("", seq))
