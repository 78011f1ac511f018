// The form of a line of the table of messages, and what its words mean.
import type * as Schema from "effect/Schema"
import type { BucketName } from "#streams/buckets.ts"

/** The writer of a message: a stage, each start of a process, a verb, or a publisher by NATS. */
type Writer =
  | "gateway"
  | "projection"
  | "fanout"
  | "delivery"
  | "tally"
  | "start"
  | "cli"
  | "publisher"

/**
 * Why a message is kept.
 * `state`: what is true now is folded from it.
 * `work`: somebody still has to do what it says.
 * `content`: pushes are made from it.
 * `audit`: somebody may ask what happened, and who did it.
 * `guard`: a start compares it with what the process has.
 */
type Use = "state" | "work" | "content" | "audit" | "guard"

type AnySchema = Schema.Top & { readonly Type: object }

/** A former number of a message, with the ways to the next number and back. Both are pure. */
export interface Former {
  readonly schema: AnySchema
  /** Makes a body of this number into one of the next. */
  readonly up: (body: never) => object
  /**
   * Makes a body of the next number into one of this. Absent: no version runs any more that reads
   * nothing later than this number.
   */
  readonly down?: (body: never) => object
}

export interface Line<S extends AnySchema = AnySchema> {
  /** The schema of the newest number. */
  readonly schema: S
  /** The newest number. The header `Bellcast-Type` of a stored message is `name/number`. */
  readonly number: number
  readonly writers: ReadonlyArray<Writer>
  readonly use: Use
  /** Whether body, headers or subject name a person: a user's id or its pseudonym. */
  readonly namesPerson: boolean
  /** The buckets with entries that rest on the message: `bellcast verify` compares these. */
  readonly buckets: ReadonlyArray<BucketName>
  /** Whether it has data of a client, which is stored and handed on as it came. */
  readonly isOfClient: boolean
  /** The numbers before, from 1 on. */
  readonly former: ReadonlyArray<Former>
}

/** A line of the table. `more`: what few lines have. */
export const line = <S extends AnySchema>(
  schema: S,
  number: number,
  writers: Line["writers"],
  use: Use,
  namesPerson: boolean,
  buckets: Line["buckets"],
  more: Partial<Pick<Line, "isOfClient" | "former">> = {}
): Line<S> => ({
  ...{ schema, number, writers, use, namesPerson, buckets },
  isOfClient: false,
  former: [],
  ...more
})

/** A former number: of the schema `from`, before the one of `to`. See `Former`. */
export const former = <From extends AnySchema, To extends AnySchema>(
  from: From,
  _to: To,
  up: (body: From["Type"]) => To["Type"],
  down?: (body: To["Type"]) => From["Type"]
): Former => ({ schema: from, up, ...(down === undefined ? {} : { down }) })
