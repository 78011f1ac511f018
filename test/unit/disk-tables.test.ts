// How long one hostile address and one hostile account take to fill LOG and each bucket: the days
// in src/cli/README.md follow from the measured bytes there, and from the limits in the code.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { settings } from "#config"
import { tombstonesMax } from "#domain/subscription/tombstone.ts"
import { changeBytes } from "#gateway/quotas.ts"
import { gatewaySettings } from "#gateway/settings.ts"
import { fullShare, usersShare } from "#nats/watch/space.ts"
import { everySetting } from "#settings/every-setting.ts"
import { layerOf, readSource } from "#settings/source.ts"
import { buckets } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { entryBytes, fillDays, publisherDays, type Sizes } from "../support/disk-tables.ts"

/** What a start of the gateway has without any setting. */
const limits = await Effect.runPromise(
  everySetting({
    perAddress: gatewaySettings.changesPerAddressPerHourMax,
    perUser: gatewaySettings.changesPerUserPerHourMax,
    channels: gatewaySettings.newChannelsPerHourMax,
    publisher: gatewaySettings.broadcastBytesPerPublisherPerHourMax,
    subscriptions: settings.subscriptionsPerUserMax,
    registrations: settings.registrationsPerUserMax
  }).pipe(Effect.provide(layerOf(readSource({ BELLCAST_CONFIG: "/dev/null" }))))
)

const mebibyte = 1024 ** 2
const tombstoneBytes = 190
const { channel, registration, subscription } = entryBytes as Record<
  "channel" | "registration" | "subscription",
  { readonly log: Sizes; readonly bucket: Sizes }
>

/** Bytes that the changes of one address add to a bucket in an hour, in the size that adds most. */
const mostOf = ({ bucket, log }: { readonly log: Sizes; readonly bucket: Sizes }) =>
  Math.max(
    ...(["usual", "largest"] as const).map(
      (size) => (limits.perAddress / Math.max(1, log[size] / changeBytes)) * bucket[size]
    )
  )

const hourly: Record<string, { readonly share: number; readonly bytes: number }> = {
  LOG: { share: usersShare, bytes: limits.perAddress * changeBytes },
  subscriptions: { share: fullShare, bytes: mostOf(subscription) },
  registrations: { share: fullShare, bytes: mostOf(registration) },
  channels: { share: fullShare, bytes: limits.channels * channel.bucket.largest }
}

/** The most bytes that one account has in a bucket. */
const held: Record<string, number> = {
  subscriptions:
    limits.subscriptions * subscription.bucket.largest + tombstonesMax * tombstoneBytes,
  // With those that ended within the hour.
  registrations: (limits.registrations + limits.perUser) * registration.bucket.largest,
  channels: limits.registrations * channel.bucket.largest
}

const nameOf = (row: string) => /^\w+/.exec(row)![0]
const daysOf = (mebibytes: number, share: number, bytesPerHour: number) =>
  Math.floor((mebibytes * mebibyte * share) / (24 * bytesPerHour))

describe("the table of what fills the disk", () => {
  it("has a row for LOG and for each bucket, with its size", () => {
    const sizes = Object.entries(buckets).map(([name, { maxBytes }]) => [name, maxBytes / mebibyte])
    assert.deepEqual(
      fillDays.map(({ mebibytes, name }) => [nameOf(name), mebibytes]),
      [["LOG", streams.log.maxBytes / mebibyte], ...sizes]
    )
  })

  for (const [row, { bytes, share }] of Object.entries(hourly))
    it(`says after how many days one hostile address fills ${row}: 45 or more`, () => {
      const { mebibytes, ofAddress } = fillDays.find(({ name }) => nameOf(name) === row)!
      const days = daysOf(mebibytes, share, bytes)
      assert.equal(ofAddress, String(days))
      assert.isAtLeast(days, 45)
    })

  it("says after how many days one hostile account fills LOG: 45 or more", () => {
    const { mebibytes, ofAccount } = fillDays.find(({ name }) => nameOf(name) === "LOG")!
    const days = daysOf(mebibytes, usersShare, limits.perUser * subscription.log.largest)
    assert.equal(ofAccount, String(days))
    assert.isAtLeast(days, 45)
  })

  it("says after how many days one publisher fills LOG", () => {
    const days = daysOf(streams.log.maxBytes / mebibyte, fullShare, limits.publisher)
    assert.equal(publisherDays, `${days} days`)
  })

  it("says that one account never fills another bucket: it has less than 0.2 % of each", () => {
    const others = fillDays.filter(({ name }) => nameOf(name) !== "LOG")
    for (const { mebibytes, name, ofAccount } of others) {
      assert.equal(ofAccount, "never", name)
      assert.isBelow(held[name] ?? 0, (mebibytes * mebibyte) / 500, name)
    }
  })
})
