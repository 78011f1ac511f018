// Drafts as the console stores them. Each is stored whole, on the version that was seen last.
import { randomId, request } from "./client.ts"
import { session } from "./session.ts"
import type { Broadcast, Draft, DraftData, WholeBroadcast } from "./shapes.ts"

export interface StoredDraft {
  readonly draft: Draft
  /** Of the version that was seen: a change and a publication name it. */
  readonly etag: string
}

const pathOf = (id: string): string => `drafts/${encodeURIComponent(id)}`

export const newDraftId = randomId

const tagChars = 8

/** For a new draft, so that a correction of it can replace it. */
export const newTag = (): string => newDraftId().slice(0, tagChars)
export const isMadeUp = (tag: string): boolean => /^[\da-f]{8}$/.test(tag)

export const readDraft = async (id: string, signal?: AbortSignal): Promise<StoredDraft> => {
  const { body, etag = "" } = await request<{ readonly data: Draft }>(pathOf(id), {
    ...(signal && { signal })
  })
  return { draft: body.data, etag }
}

/** Stores a draft: a new one, or on the version with this tag. */
export const storeDraft = async (
  id: string,
  data: DraftData,
  etag?: string
): Promise<StoredDraft> => {
  const answer = await request<{ readonly data: Draft }>(pathOf(id), {
    method: "PUT",
    body: { data },
    headers: etag === undefined ? { "If-None-Match": "*" } : { "If-Match": etag }
  })
  return { draft: answer.body.data, etag: answer.etag ?? "" }
}

/** Deletes the version with this tag. */
export const deleteDraft = async (id: string, etag: string): Promise<void> => {
  await request(pathOf(id), { method: "DELETE", headers: { "If-Match": etag } })
}

/** Names of people in a broadcast that only its publisher gets: 0 for the publisher. */
export const lacksOf = ({ publisher, to }: Broadcast): number =>
  publisher === session().user ? 0 : (to?.users ?? 0) + (to?.except_users ?? 0)

/** Whether the caller sees its state alone: what a letter says is for its publisher. */
export const isHidden = (broadcast: WholeBroadcast): boolean =>
  lacksOf(broadcast) > 0 && broadcast.data === undefined && broadcast.data_by_locale === undefined

/** A published broadcast as a draft says it, without its time. */
export const draftOf = (broadcast: WholeBroadcast): DraftData => {
  const { data, data_by_locale, except_users, name, pause_when, rate } = broadcast
  const { topic, ttl, urgency, users } = broadcast
  const channels = broadcast.to?.channels?.length ? broadcast.to.channels : undefined
  const to = defined({ channels, users, except_users })
  return defined({
    ...{ name, data, data_by_locale, rate, pause_when, ttl, urgency, topic },
    to: Object.keys(to).length > 0 ? to : undefined
  })
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
const defined = <T extends object>(members: T): Defined<T> =>
  Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined)
  ) as Defined<T>

/** A copy must not replace the first one where nobody named a story for both. */
const withOwnTag = (draft: DraftData): DraftData => {
  const { tag } = draft.data?.notification ?? {}
  if (tag === undefined || !isMadeUp(tag)) return draft
  const text = JSON.stringify(draft).replaceAll(`"tag":"${tag}"`, `"tag":"${newTag()}"`)
  return JSON.parse(text) as DraftData
}

/** Makes a draft of what was published, which replaces nothing. Returns its id. */
export const duplicate = async (broadcast: WholeBroadcast): Promise<string> => {
  const draft = newDraftId()
  await storeDraft(draft, withOwnTag(draftOf(broadcast)))
  return draft
}
