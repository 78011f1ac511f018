// The bytes of entries in the table of what fills the disk (src/cli/README.md) are those of NATS,
// and a change counts for its address with no fewer.
import { afterAll, assert, beforeAll, describe, it, onTestFinished } from "vitest"
import { bytesOfChange } from "#gateway/quotas.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { type Answer, call, finished, publish, until } from "../support/client.ts"
import { entryBytes } from "../support/disk-tables.ts"
import { holdResponses } from "../support/held.ts"
import { settled } from "../support/quiet.ts"
import { type Room, startRoom } from "../support/room.ts"
import { runCli } from "../support/run-cli.ts"

/** Requests at once: so many that NATS stores them in batches, with more headers. */
const atOnce = 48
/** How far bytes may be off: the digits of sequences, and which messages shared a batch. */
const tolerance = 0.08

let room: Room
beforeAll(async () => {
  room = await startRoom()
})
afterAll(() => room[Symbol.asyncDispose]())

const bytesIn = async (bucket: string) => {
  const streams = ["BELLCAST_LOG", `KV_bellcast_${bucket}`]
  const infos = await Promise.all(streams.map((stream) => room.admin.jsm.streams.info(stream)))
  return { log: infos[0]!.state.bytes, bucket: infos[1]!.state.bytes }
}

const settledIn = (bucket: string, millis: number) => settled(() => bytesIn(bucket), millis)

/** Bytes that one of some changes adds to LOG and to a bucket. */
const added = async (bucket: string, changes: number, change: () => Promise<unknown>) => {
  const before = await settledIn(bucket, 500)
  await change()
  // A response waits for no owners and counts, which followers store once a second.
  const after = await settledIn(bucket, 1_200)
  return {
    log: (after.log - before.log) / changes,
    bucket: (after.bucket - before.bucket) / changes
  }
}

const many = async (request: (n: number) => Promise<Answer>) => {
  const answers = await Promise.all(Array.from({ length: atOnce }, (_, n) => request(n)))
  for (const { body, status } of answers) assert.isBelow(status, 300, JSON.stringify(body))
  return answers
}

const assertClose = (measured: number, documented: number, what: string) =>
  assert.closeTo(measured / documented, 1, tolerance, `${what}: ${measured}, not ${documented}`)

/** The bytes with which the last message on a subject counts for its address. */
const countedOf = async (subject: string) => {
  const message = await room.admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: subject })
  return bytesOfChange(subject, message!.json<{ user: string }>())
}

const endpointOf = (n: number) => `https://fcm.googleapis.com/fcm/send/${n}:`.padEnd(188, "x")
const usualOf = (n: number) => ({ ...room.push.subscribe().subscription, endpoint: endpointOf(n) })
const largestOf = (n: number) => {
  const data = { ...usualOf(1_000 + n), extra: "" }
  return { ...data, extra: "x".repeat(4_096 - JSON.stringify(data).length) }
}

describe("the table has the bytes", { timeout: 60_000 }, () => {
  for (const [size, dataOf] of [
    ["usual", usualOf],
    ["largest", largestOf]
  ] as const)
    it(`of subscriptions of ${size} size`, async () => {
      const { bucket, log } = entryBytes["subscription"]!
      const user = (n: number) => `${size}-${n}`
      const ids: Array<string> = []
      const put = await added("subscriptions", atOnce, async () => {
        const post = (n: number) =>
          call(room.service.url, "POST", "/subscriptions", user(n), { data: dataOf(n) })
        for (const { body } of await many(post)) ids.push(body.data.id)
      })
      const counted = await countedOf(subjects.subscription(room.token(user(0))))
      const end = await added("subscriptions", atOnce, () =>
        many((n) => call(room.service.url, "DELETE", `/subscriptions/${ids[n]}`, user(n)))
      )
      assertClose(put.bucket, bucket[size], "bucket")
      assertClose(put.log + end.log, log[size], "LOG")
      assert.isAtLeast(counted, 0.95 * (put.log + end.log))
    })

  for (const [size, channelOf] of [
    ["usual", (n: number) => `news-${String(n).padStart(5, "0")}`],
    ["largest", (n: number) => `${"é".repeat(125)}${String(n).padStart(5, "0")}`]
  ] as const)
    it(`of registrations and channels of ${size} size`, async () => {
      const pathOf = (n: number) => `/channels/${encodeURIComponent(channelOf(n))}/registration`
      const change = (
        method: string,
        channel: (n: number) => number,
        user: (n: number) => string
      ) => many((n) => call(room.service.url, method, pathOf(channel(n)), user(n)))
      const ofOne = () => `${size}-one`
      const begun = await added("channels", atOnce, () => change("PUT", (n) => n, ofOne))
      assertClose(begun.bucket, entryBytes["channel"]!.bucket[size], "channel")
      const user = (n: number) => `${size}-${n}`
      const put = await added("registrations", atOnce, () => change("PUT", () => 0, user))
      const subject = subjects.registration(channelToken(channelOf(0)), room.token(user(0)))
      const counted = await countedOf(subject)
      const end = await added("registrations", atOnce, () => change("DELETE", () => 0, user))
      const { bucket, log } = entryBytes["registration"]!
      assertClose(put.bucket, bucket[size], "bucket")
      assertClose(put.log + end.log, log[size], "LOG")
      assert.isAtLeast(counted, 0.95 * (put.log + end.log))
    })

  for (const [size, data] of [
    ["usual", { title: "Hello" }],
    ["largest", { text: "x".repeat(3_993 - '{"text":""}'.length) }]
  ] as const)
    it(`of broadcasts of ${size} size`, async () => {
      await room.joinWith("slow", "paul", ["201"])
      const { respond } = holdResponses(room.push.agents)
      onTestFinished(respond)
      let id = ""
      const stored = await added("broadcasts", 1, async () => {
        id = await publish(room.service.url, "slow", data)
        await until(
          () => room.entryOf(id),
          (entry) => entry !== null
        )
      })
      const end = await added("broadcasts", 1, () => {
        respond()
        return finished(room.service.url, "slow", id)
      })
      await room.entryIsGone(id)
      const { bucket, log } = entryBytes["broadcast"]!
      assertClose(stored.bucket, bucket[size], "bucket")
      assertClose(stored.log + end.log, log[size], "LOG")
    })

  it("of grants and tokens", async () => {
    const run = (...args: ReadonlyArray<string>) => runCli([...args, "--nats", room.natsUrl])
    const granted = await added("permissions", 1, () =>
      run("permissions", "grant", "news", `signed:${"u".repeat(30)}`)
    )
    assertClose(granted.log, entryBytes["grant"]!.log.usual, "LOG")
    assertClose(granted.bucket, entryBytes["grant"]!.bucket.usual, "bucket")
    for (const [size, count, pattern] of [
      ["usual", 1, "news*"],
      ["largest", 50, "x".repeat(250)]
    ] as const) {
      const channels = Array.from({ length: count }, (_, n) => `--channel=${pattern}-${n + 10}`)
      const made = await added("permissions", 1, () =>
        run("token", "create", size, "--expires=90d", ...channels)
      )
      assertClose(made.log, entryBytes["token"]!.log[size], "LOG")
      assertClose(made.bucket, entryBytes["token"]!.bucket[size], "bucket")
    }
  })
})
