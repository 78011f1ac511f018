// Garbage for NATS: on every subject, of every shape.

const stranger = "A".repeat(22)
const job = {
  ...{
    broadcast: 1,
    channel: "news",
    acceptedAt: 1,
    expiresAt: 4_000_000_000_000,
    urgency: "normal",
    user: stranger
  },
  ...{
    subscription: "a b\r\nPUB x 0\r\n",
    generation: 1,
    firstWaitMillis: 0,
    attempts: 1,
    reason: "timeout"
  }
}

/** Subject, type and body of things that nobody should send. */
export const garbage: ReadonlyArray<
  readonly [subject: string, type: string | undefined, body: unknown]
> = [
  ...[
    "subscription",
    "registration",
    "registration.=ZZ",
    `registration.${"c".repeat(3_600)}`,
    "nonsense",
    "subscription.a"
  ].map(
    (place) =>
      [`bellcast.cmd.${place}.${stranger}`, "registration.put/1", { user: "x", at: 1 }] as const
  ),
  // The key of a bucket's checkpoint.
  [
    "bellcast.cmd.subscription.meta",
    "subscription.put/1",
    {
      user: "x",
      id: "a",
      data: { endpoint: "", keys: { auth: "", p256dh: "" } },
      lastModified: 1
    }
  ],
  ["bellcast.cmd.subscription.meta", "subscription.delete/1", { user: "x", removed: [] }],
  ["bellcast.cmd.broadcast.x", undefined, {}],
  ["bellcast.cmd.broadcast.x.y.z", undefined, {}],
  ["bellcast.cmd.x", undefined, Buffer.alloc(30_000, 0xff)],
  ["bellcast.cmd.broadcast.x.news", "subscription.put/1", {}],
  ...[
    "plan.news",
    "plan.news.1",
    "plan.news.x",
    "job.shard",
    "job.shard.1.all",
    "job.limited.1.all",
    "job.retry.a.1.b.c",
    "job.nonsense",
    "outcome.x",
    "dead.x"
  ].flatMap((place) =>
    [undefined, "plan/1", "shard/1", "retry/1", "outcome/1", "made/up", "__proto__"].flatMap(
      (type) =>
        [{}, [], "text", Buffer.from([0, 255, 13, 10]), Buffer.alloc(60_000, 0x5b)].map(
          (body) => [`bellcast.${place}`, type, body] as const
        )
    )
  ),
  // The body names another broadcast, and finishes at once.
  [
    "bellcast.plan.news.5005",
    "plan/1",
    {
      ...{ broadcast: 7007, depth: 0, shards: 0, acceptedAt: 1, expiresAt: 2, at: 1 },
      floor: { subscriptions: 0, registrations: 0 }
    }
  ],
  ["bellcast.job.retry.a.1.b.d", "retry/1", job],
  ["bellcast.job.retry.a.1.b.e", "retry/1", { ...job, subscription: "a", channel: ">" }],
  [
    "bellcast.job.shard.1.b",
    "shard/1",
    { ...job, shard: "> *\r\n", floor: { subscriptions: 0, registrations: 0 } }
  ],
  [
    "bellcast.job.shard.1.c",
    "shard/1",
    { ...job, shard: "c", floor: { subscriptions: 9e15, registrations: 0 } }
  ],
  [
    "bellcast.job.limited.1.d",
    "shard/1",
    { ...job, shard: "d", rate: 0, floor: { subscriptions: 0, registrations: 0 } }
  ],
  [
    "bellcast.job.limited.1.e",
    "shard/1",
    { ...job, shard: "e", rate: 1, floor: { subscriptions: 0, registrations: 0 } }
  ],
  // There is no such sequence, and none can be asked for.
  ...[0, -1].flatMap((broadcast) => [
    [
      "bellcast.job.shard.0.a",
      "shard/1",
      { ...job, broadcast, shard: "a", floor: { subscriptions: 0, registrations: 0 } }
    ] as const,
    ["bellcast.job.retry.a.0.b.c", "retry/1", { ...job, broadcast, subscription: "a" }] as const
  ]),
  // Longer than a server can count.
  ["bellcast.job.retry.a.1.b.f", "retry/1", { ...job, subscription: "a", firstWaitMillis: 9e15 }],
  [
    `bellcast.outcome.${"c".repeat(3_700)}.1.shard.all`,
    "outcome/1",
    { broadcast: 1, pushes: 1, results: [], final: true, at: 1 }
  ]
]
