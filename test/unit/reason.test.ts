// The closed set of reasons: each is produced, no other is, and the document of this stage explains
// each.
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { AttemptResult, Target } from "#delivery/attempt.ts"
import { cancelledEnd, defectEnd, resultOf } from "#delivery/jobs/result.ts"
import { endOf } from "#delivery/jobs/retry.ts"
import { classify } from "#delivery/push/post.ts"
import { unsendable } from "#delivery/push/send.ts"
import type { Answer, NoAnswer } from "#delivery/push/transport/exchange.ts"
import { PushService } from "#delivery/push-service/push-service.ts"
import { attemptsMax, type BroadcastRef } from "#domain/job.ts"
import {
  deadReasons,
  deferReasons,
  goneReasons,
  refusalReasons,
  retryReasons,
  StoredReason,
  strikeReasonOf,
  strikeReasons,
  unsentReasons
} from "#domain/reason.ts"
import type { UserToken } from "#streams/tokens.ts"
import { pushesAt } from "#test/judged-pushes.ts"

const now = Date.UTC(2026, 10, 20, 12, 0, 0)
const hour = 3_600_000

const ref: BroadcastRef = {
  broadcast: 2,
  channel: "news",
  acceptedAt: now,
  expiresAt: now + 24 * hour,
  urgency: "normal"
}
const target: Target = {
  user: "user" as UserToken,
  id: "id",
  stored: {
    seq: 1,
    lastModified: 0,
    data: { endpoint: "https://push.example.org/1", keys: { auth: "", p256dh: "" } }
  }
}
const pushTo = pushesAt(now)

const received = (
  status: number,
  body = "",
  headers: Readonly<Record<string, string>> = {}
): Answer => ({ status, body, headers })

const responses: ReadonlyArray<Answer | NoAnswer> = [
  ...Array.from({ length: 500 }, (_, i) => received(100 + i)),
  received(400, "BadWebPushTopic"),
  received(400, "VapidPkHashMismatch"),
  received(400, "", { "x-wns-error-description": "bad TTL" }),
  received(200, "", { "x-wns-status": "dropped" }),
  ...[
    "ADDRESS_NOT_ALLOWED",
    "BELLCAST_EXCESSIVE",
    "BELLCAST_PROXY",
    "CERT_HAS_EXPIRED",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "ENOTFOUND",
    "ETIMEDOUT",
    "UNKNOWN"
  ].map((error) => ({ error }))
]
const classified = responses.map((each) => classify(each, "push.example.org", now))

const newPushService = (pushesUnderWayMax = 1) =>
  new PushService("https://push.example.org", "k1", {
    pushesUnderWayMax,
    hasHeadroom: () => true,
    breakerOpenMillis: 60_000,
    retryBaseMillis: 10_000
  })

/**
 * Every deferral of a push service: refusals, a 429 for five subscriptions, silence, too many
 * "gone".
 */
const deferrals = () => {
  const refusing = [newPushService(), newPushService()] as const
  const refused = [
    refusing[0].judge({ kind: "failed", reason: "credentials" }, pushTo("a"), 401, now),
    refusing[1].judge({ kind: "failed", reason: "key-mismatch" }, pushTo("a"), 403, now)
  ].map(({ judged }) => judged)
  const throttling = newPushService()
  const silent = newPushService()
  for (const user of ["a", "b", "c", "d", "e"]) {
    throttling.judge({ kind: "failed", reason: "throttled" }, pushTo(user), 429, now)
    silent.failed("timeout", pushTo(user), now)
  }
  const gone = newPushService()
  for (let i = 0; i < 50; i++)
    gone.judge({ kind: "gone", reason: "gone" }, pushTo(`${i}`), 410, now)
  return [
    ...refused,
    refusing[0].deferral(pushTo("b"), now),
    throttling.deferral(pushTo("f"), now),
    silent.deferral(pushTo("f"), now),
    gone.judge({ kind: "gone", reason: "gone" }, pushTo("x"), 410, now).judged
  ]
}

const checked = (
  at: number,
  given: {
    readonly keyFault?: "unknown" | "retired"
    readonly sealed?: "invalid-key" | "encryption"
    readonly hosts?: ReadonlyArray<string>
  } = {}
) => {
  const { hosts = ["*"], keyFault, sealed } = given
  const policy = { hosts, allowLoopback: false }
  return unsendable({ policy, retryBaseMillis: 10_000, keyFault }, target, ref, sealed, at)
}

/** Decisions of this process about pushes that are never sent. */
const decidedHere = [
  checked(now, { sealed: "invalid-key" }),
  checked(now, { sealed: "encryption" }),
  checked(now, { hosts: [] }),
  checked(now, { keyFault: "retired" })
].flatMap((each) => each ?? [])

describe("the reasons", () => {
  it("of attempts are those that the classifier and the checks before sending produce", () => {
    assert.deepEqual(
      decidedHere.map(({ kind, reason }) => `${kind} ${reason}`),
      ["gone invalid-key", "failed encryption", "dead endpoint-not-allowed", "dead key-retired"]
    )
    assert.sameMembers(
      [...new Set([...classified, ...decidedHere].map(({ reason }) => reason))],
      [...new Set(["accepted", ...goneReasons, ...deadReasons, ...retryReasons, ...refusalReasons])]
    )
  })

  it("of pushes given up at once are not those of pushes that are tried again", () => {
    const triedAgain: ReadonlyArray<string> = [...retryReasons, ...deferReasons]
    assert.deepEqual(
      deadReasons.filter((reason) => triedAgain.includes(reason)),
      []
    )
  })

  it("of deferrals are those that push services and checks before sending produce", () => {
    const slow = newPushService(2)
    for (const user of ["a", "b", "c", "d", "e"])
      slow.judge({ kind: "failed", reason: "throttled" }, pushTo(user), 429, now)
    for (let i = 0; i < 4; i++) void Effect.runFork(slow.withPlace(1, Effect.never))
    const unknown = checked(now, { keyFault: "unknown" })
    const produced = [...deferrals(), unknown, slow.queueFull(now, now)]
    assert.sameMembers(
      [...new Set(produced.map((each) => each?.reason))],
      [...new Set(deferReasons)]
    )
  })

  it("of pushes that end unsent are left, moved, suspended, expired, cancelled or internal", () => {
    const suspended = { cause: "redirect", at: now } as const
    const ends = [
      endOf("left", ref.expiresAt, now),
      endOf("moved", ref.expiresAt, now),
      endOf({ ...target, stored: { ...target.stored, suspended } }, ref.expiresAt, now),
      endOf(target, ref.expiresAt, ref.expiresAt),
      cancelledEnd,
      defectEnd
    ]
    assert.deepEqual(
      ends.map((each) => each?.reason),
      [...unsentReasons]
    )
  })

  it("of the last attempt stand behind expired and attempts-used-up", () => {
    const reasonOf = (result: AttemptResult, number: number, at: number) => {
      const attempt = { ...result, decidedBy: "process", millis: 0 } as const
      return resultOf({ target, ref, attempt, number, at, baseMillis: 10_000, random: 0 }).reason
    }
    for (const reason of deferReasons) {
      const deferred = { kind: "deferred", reason, waitMillis: ref.expiresAt - now } as const
      assert.strictEqual(reasonOf(deferred, 1, now), `expired:${reason}`)
    }
    for (const result of [...classified, ...decidedHere])
      if (result.kind === "failed") {
        assert.strictEqual(reasonOf(result, 1, ref.expiresAt), `expired:${result.reason}`)
        assert.strictEqual(reasonOf(result, attemptsMax, now), `attempts-used-up:${result.reason}`)
      }
  })

  it("of a push that expires in the queue name the queue", () => {
    const expired = { kind: "expired", reason: "expired:push-service-slow" } as const
    assert.deepEqual(checked(ref.expiresAt), expired)
  })

  it("stand in the table of src/delivery/README.md, each of them and no other", () => {
    const readme = readFileSync("src/delivery/README.md", "utf8")
    const table = readme.split("## Reasons")[1]!.split("\n## ")[0]!
    const explained = [...table.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, reason]) => reason)
    assert.sameMembers(explained, [
      ...new Set([
        "accepted",
        ...goneReasons,
        ...deadReasons,
        ...retryReasons,
        ...deferReasons,
        ...unsentReasons
      ])
    ])
  })

  it("of other versions decode", () => {
    const decode = Schema.decodeUnknownSync(StoredReason)
    assert.strictEqual(decode("a-word-of-tomorrow"), "a-word-of-tomorrow")
    assert.throws(() => decode(1))
  })

  it("count as strikes after attempts-used-up, but not as deferrals after expired", () => {
    for (const reason of strikeReasons) {
      assert.strictEqual(strikeReasonOf(reason), reason)
      assert.strictEqual(strikeReasonOf(`attempts-used-up:${reason}` as StoredReason), reason)
    }
    for (const reason of deferReasons) assert.isUndefined(strikeReasonOf(`expired:${reason}`))
  })
})
