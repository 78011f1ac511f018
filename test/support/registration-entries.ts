// The entries of registrations, in the bucket of a NATS.
import { until } from "./client.ts"
import type { NatsAdmin } from "./nats-admin.ts"

export const bucket = "KV_bellcast_registrations"

/** The subjects of the entries of a channel. */
const entriesOf = async ({ jsm }: NatsAdmin, channel: string) => {
  const filter = `$KV.bellcast_registrations.${channel}.>`
  const { state } = await jsm.streams.info(bucket, { subjects_filter: filter })
  return Object.keys(state.subjects ?? {})
}

/** Whether the users of the entries of a channel are registered. */
export const areOn = async (admin: NatsAdmin, channel: string): Promise<ReadonlyArray<boolean>> => {
  const found = (await entriesOf(admin, channel)).map(async (last_by_subj) => {
    const message = await admin.jsm.streams.getMessage(bucket, { last_by_subj })
    return message?.json<{ on: boolean }>().on
  })
  return (await Promise.all(found)).filter((on) => on !== undefined)
}

/** The subject of the entry of a user, by the user's token. */
export const entryOf = async (admin: NatsAdmin, channel: string, user: string) =>
  (await entriesOf(admin, channel)).find((subject) => subject.endsWith(`.${user}`))!

export const removeEntry = async (admin: NatsAdmin, channel: string, user: string) => {
  const last_by_subj = await entryOf(admin, channel, user)
  const { seq } = (await admin.jsm.streams.getMessage(bucket, { last_by_subj }))!
  await admin.jsm.streams.deleteMessage(bucket, seq)
}

/** Waits until no later run of the projector applies what is in LOG now. */
export const allIsSaved = ({ jsm }: NatsAdmin) =>
  until(
    async () => {
      const last = await jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: "bellcast.cmd.>" })
      const meta = await jsm.streams.getMessage("KV_bellcast_subscriptions", {
        last_by_subj: "$KV.bellcast_subscriptions.meta"
      })
      return (meta?.json<{ seq?: number }>().seq ?? 0) - last!.seq
    },
    (behind) => behind >= 0
  )
