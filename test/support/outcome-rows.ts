// The outcome table: what a push service answers, step by step, and what becomes of the push and
// of its subscription.

export interface Row {
  /** What the push service answers; the last step repeats. */
  readonly script: ReadonlyArray<string>
  /** Fate, reason and status of the last attempt. */
  readonly ends: readonly [fate: string, reason: string, status?: number]
  /** Attempts that count. */
  readonly attempts: number
  /** Requests the push service got. */
  readonly requests: number
  /**
   * What becomes of the subscription: it stays, without a strike, unless the row says otherwise.
   */
  readonly subscription?: "removed" | "struck"
  /** One push arrives first, which proves our key. */
  readonly proven?: true
  readonly headers?: Record<string, string>
  readonly host?: "localhost"
  readonly tls?: true
}

const attemptsMax = 8
const mismatch = '403 {"reason":"VapidPkHashMismatch"}'
const badToken = '403 {"reason":"BadJwtToken"}'
const badTopic = '400 {"errno":113}'
const each = <A extends string | number>(
  list: ReadonlyArray<A>,
  row: (one: A) => Row
): ReadonlyArray<readonly [string, Row]> => list.map((one) => [String(one), row(one)] as const)

const usedUp = (script: string, reason: string, status?: number, attempts = attemptsMax): Row => {
  const ends = [
    "dead",
    `attempts-used-up:${reason}`,
    ...(status === undefined ? [] : [status])
  ] as unknown as Row["ends"]
  return { script: [script], ends, attempts, requests: attempts }
}
/** Tried again, and taken. */
const again = (step: string, requests = 2): Row => ({
  script: [step, "201"],
  ends: ["delivered", "accepted", 201],
  attempts: 2,
  requests
})
const dead = (step: string | number, reason: string, more: Partial<Row> = {}): Row => ({
  ...{
    script: [String(step)],
    ends: ["dead", reason, Number(String(step).slice(0, 3))],
    attempts: 1,
    requests: 1
  },
  ...more
})

export const outcomeRows: ReadonlyArray<readonly [name: string, row: Row]> = [
  ...each([200, 201, 202, 203, 204], (status) => ({
    ...{
      script: [String(status)],
      ends: ["delivered", "accepted", status],
      attempts: 1,
      requests: 1
    }
  })),
  [
    "a success whose body never ends",
    { script: ["huge"], ends: ["delivered", "accepted", 201], attempts: 1, requests: 1 }
  ],
  [
    "a slow success",
    { script: ["slow 200"], ends: ["delivered", "accepted", 201], attempts: 1, requests: 1 }
  ],

  ...each([404, 410], (status) => ({
    ...{
      script: [String(status)],
      ends: ["gone", "gone", status],
      attempts: 1,
      requests: 1,
      subscription: "removed"
    }
  })),

  ...each(
    [
      '400 {"reason":"VapidPkHashMismatch"}',
      mismatch,
      '403 {"message":"do not correspond to the credentials"}',
      '403 {"error":"MismatchSenderId"}',
      '401 {"errno":109,"message":"VAPID public key mismatch"}'
    ],
    (step) => ({
      // Stored a moment ago, so the key may be one that only other processes have: only one of
      // yesterday is removed.
      ...usedUp(step, "key-mismatch", Number(step.slice(0, 3))),
      ...{ script: ["201", step], proven: true, subscription: "struck" }
    })
  ),
  [
    "a mismatch before our key was ever taken",
    {
      script: [mismatch, mismatch, "201"],
      ends: ["delivered", "accepted", 201],
      attempts: 1,
      requests: 3
    }
  ],

  ...each(
    [
      '401 {"errno":109}',
      badToken,
      '400 {"e":"UnauthorizedRegistration"}',
      '400 {"reason":"BadAuthorizationHeader"}'
    ],
    (step) => ({
      ...{ script: [step, "201"], ends: ["delivered", "accepted", 201], attempts: 1, requests: 2 }
    })
  ),
  [
    "credentials refused again by a probe: all wait",
    {
      script: [badToken, badToken, "201"],
      ends: ["delivered", "accepted", 201],
      attempts: 1,
      requests: 3
    }
  ],
  [
    "credentials refused to one while our key is proven",
    {
      ...usedUp("401", "credentials", 401),
      ...{ script: ["201", "401"], proven: true, subscription: "struck" }
    }
  ],

  ["413", dead(413, "too-large")],
  ["a refused Topic, without it", { ...again(badTopic), attempts: 1, headers: { topic: "t" } }],
  ["a refused Topic, again", dead(badTopic, "bad-topic", { requests: 2, headers: { topic: "t" } })],
  ["WNS on the TTL", dead("400 x-wns-error-description: Ttl value conflicts", "bad-ttl")],
  ...each([400, 405, 406, 411, 414, 415, 422, 431, 501, 505], (status) => dead(status, "refused")),

  ["429", again("429 retry-after 1")],
  ["429 for ever", { ...usedUp("429", "throttled", 429) }],
  ["a success that WNS throttles", again("200 x-wns-status: channelthrottled")],
  ["a success that WNS drops", again("200 x-wns-status: dropped")],
  ["a success that WNS always drops", usedUp("200 x-wns-status: dropped", "dropped", 200, 2)],
  ["a removal that WNS throttles", again("410 x-wns-notificationstatus: appthrottled")],

  ...each(
    [408, 425, 500, 502, 503, 504, 507, 520, 521, 522, 523, 524, 525, 526, 527, 599],
    (status) => again(String(status))
  ),
  ["503 with a date", again("503 retry-after-date 2")],
  ["503 for ever", usedUp("503", "server-error", 503)],
  [
    "503 for longer than the push lives",
    {
      script: ["503 retry-after 90"],
      ends: ["expired", "expired:server-error", 503],
      attempts: 1,
      requests: 1,
      headers: { ttl: "60" }
    }
  ],

  ...each([300, 301, 302, 303, 308], (status) =>
    dead(status, "redirect", { subscription: "struck" })
  ),
  [
    "a redirect, not followed",
    {
      ...dead(307, "redirect", { subscription: "struck" }),
      script: ["redirect http://127.0.0.1:1/"]
    }
  ],
  ...each([402, 409, 418, 451], (status) => dead(status, "unexpected", { subscription: "struck" })),
  ["421, over another connection", { ...again("421"), attempts: 1 }],
  ["421 again", dead(421, "unexpected", { requests: 2, subscription: "struck" })],

  [
    "a name that does not exist",
    { ...usedUp("201", "unknown-host"), host: "localhost", requests: 0, subscription: "struck" }
  ],
  ["a connection that breaks", again("reset")],
  ["no answer in time", again("hang")],
  ["a certificate that nobody vouches for", { ...usedUp("201", "tls"), tls: true, requests: 0 }]
]
