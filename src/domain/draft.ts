// A draft of a broadcast: the commands that store and delete it, and the index of each author's
// drafts. LOG alone has what a draft says, in the last message of its subject. Pure.
import * as Schema from "effect/Schema"
import { isDraftId, isUserToken, type UserToken } from "#streams/tokens.ts"
import { Sequence } from "./broadcast.ts"
import { Timestamp } from "./timestamp.ts"

const Author = Schema.String.pipe(Schema.refine(isUserToken))

export const DraftPut = Schema.Struct({
  /** The id of the user who began the draft. */
  author: Schema.String,
  /** The pseudonym of the author, which is the key of the index. */
  user: Author,
  /** The id of the user who stored this form of it. */
  changedBy: Schema.String,
  /** Milliseconds since the epoch: later than each form before. */
  at: Timestamp,
  /** The members that the gateway knows. An unfinished draft lacks some. */
  draft: Schema.Record(Schema.String, Schema.Unknown)
})

export const DraftDelete = Schema.Struct({ user: Author, at: Timestamp })

export type DraftCommand =
  | ({ readonly type: "draft.put" } & typeof DraftPut.Type)
  | ({ readonly type: "draft.delete" } & typeof DraftDelete.Type)

/** A form of a draft: its author, its id, and the sequence of the form in LOG. */
export interface DraftForm {
  readonly user: UserToken
  readonly id: string
  readonly seq: number
}

/**
 * Header of a broadcast that was a draft: by storing the broadcast NATS ends the draft, so nothing
 * can come between. A NATS client may write anything there: it counts where the source is `rest`.
 */
const draftHeader = "Bellcast-Draft"

/** The header of a broadcast that this form of a draft becomes. */
export const draftHeaders = ({ id, seq, user }: DraftForm): Readonly<Record<string, string>> => ({
  [draftHeader]: `${user} ${id} ${seq}`
})

const isSequence = Schema.is(Sequence)

/** The form of a draft that a broadcast was; undefined: it was none. */
export const draftOf = (header: (name: string) => string | undefined): DraftForm | undefined => {
  const [user, id = "", seq, ...rest] = header(draftHeader)?.split(" ") ?? []
  return isUserToken(user) && isDraftId(id) && isSequence(Number(seq)) && rest.length === 0
    ? { user, id, seq: Number(seq) }
    : undefined
}

/** The value of a key in the bucket `drafts`: the index of an author. */
export interface Drafts {
  readonly v: 1
  /** Of the last form in the list. */
  readonly seq: number
  /** Each draft with the sequence of its form in LOG, the oldest change first. */
  readonly drafts: ReadonlyArray<readonly [id: string, seq: number]>
}

export const noDrafts: Drafts = { v: 1, seq: 0, drafts: [] }

/** The sequence of the form that an index has of a draft; undefined: there is no such draft. */
export const formIn = ({ drafts }: Drafts, id: string): number | undefined =>
  drafts.find(([each]) => each === id)?.[1]

const indexOf = (drafts: Drafts["drafts"]): Drafts => ({
  v: 1,
  seq: drafts.at(-1)?.[1] ?? 0,
  drafts
})

const without = ({ drafts }: Drafts, id: string): Drafts["drafts"] =>
  drafts.filter(([each]) => each !== id)

/** The index with a draft whose form is stored at `seq`, instead of the form before. */
export const storeDraft = (index: Drafts, id: string, seq: number): Drafts =>
  (formIn(index, id) ?? 0) >= seq ? index : indexOf([...without(index, id), [id, seq]])

/** The index without a draft. One of a later form than `upTo` stays: that was stored since. */
export const endDraft = (index: Drafts, id: string, upTo: number): Drafts => {
  const form = formIn(index, id)
  return form === undefined || form > upTo ? index : indexOf(without(index, id))
}
