// The numbers of a stored message: how a body of any number is read as one of the newest, and
// written as one of a former. No other code of a stage knows numbers.
import type * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { depthMax, parseJson, parseWhole } from "#basics/json.ts"
import type { Line } from "./line.ts"
import { type Message, type MessageBody, type MessageType, messages } from "./table.ts"

export interface Malformed {
  readonly type: "malformed"
  readonly reason: string
}

/**
 * Returns the message of a `name/number` and a JSON text, in its newest form; or "malformed" with
 * the reason: an unknown name or number, not JSON, nested too deep, data that would be changed, or
 * a body that does not match the schema of the number.
 */
export const decodeMessage = (type: string, text: string): Message | Malformed => {
  const malformed = (reason: string) => ({ type: "malformed", reason }) as const
  const { name, number } = partsOf(type)
  const decode = decoders.get(type)
  if (name === undefined || decode === undefined)
    return malformed(`unknown type ${JSON.stringify(type.slice(0, 64))}`)
  const parsed = (messages[name].isOfClient ? parseWhole : parseJson)(text)
  if (parsed === "malformed") return malformed("not JSON")
  if (parsed === "deep") return malformed(`nested more than ${depthMax} levels deep`)
  if ("loss" in parsed) return malformed(parsed.loss)
  const exit = decode(parsed.json)
  return exit._tag === "Success"
    ? ({ ...raise(messages[name], number, exit.value), type: name } as Message)
    : malformed(`not a ${type}`)
}

/** The name of the message that a `name/number` names; undefined: there is none of this name. */
export const nameOf = (type: string): MessageType | undefined => partsOf(type).name

/**
 * Whether a later version wrote a `name/number`: a known name with a higher number. Such a message
 * is not malformed, and nobody may pass over it.
 */
export const isLater = (type: string): boolean => {
  const { name, number } = partsOf(type)
  return name !== undefined && number > messages[name].number
}

/** The number that this version reads of each message that has more than one. */
export const numbersRead: Readonly<Record<string, number>> = Object.fromEntries(
  Object.entries(messages).flatMap(([name, { number }]: [string, Line]) =>
    number > 1 ? [[name, number] as const] : []
  )
)

/**
 * The type to store for a message, and its body in that number. `readByAll` returns the highest
 * number of a message that all running processes read.
 */
export const encodeMessage = <T extends MessageType>(
  name: T,
  body: MessageBody<T>,
  readByAll: (name: T) => number
): { readonly type: string; readonly body: object } => {
  const line: Line = messages[name]
  // Nearly every message has one number, and most processes write thousands in a second.
  const number = line.number === 1 ? 1 : numberFor(line, readByAll(name))
  return { type: `${name}/${number}`, body: lower(line, number, body) }
}

/**
 * The number to write for readers of at most `read`: no lower one than a way down leads to, as no
 * version runs any more that reads less.
 */
export const numberFor = ({ former, number }: Line, read: number): number => {
  const lowest = 2 + former.findLastIndex(({ down }) => down === undefined)
  return Math.min(number, Math.max(lowest, read))
}

/** The name and number of `name/number`. A name of no message is undefined. */
const partsOf = (type: string) => {
  const [, name = "", digits = "0"] = /^([a-z.-]{1,64})\/([1-9]\d{0,5})$/.exec(type) ?? []
  return { name: isName(name) ? name : undefined, number: Number(digits) }
}

const isName = (name: string): name is MessageType => Object.hasOwn(messages, name)

/** A step is given a body that the schema of its number has matched. */
type Step = (body: object) => object

/** A body of this number of a line, as one of the newest. */
export const raise = ({ former }: Line, number: number, body: object): object =>
  former.slice(number - 1).reduce((older, { up }) => (up as Step)(older), body)

/** A body of the newest number of a line, as one of this. */
export const lower = ({ former }: Line, number: number, body: object): object =>
  former.slice(number - 1).reduceRight((newer, { down }) => (down as Step)(newer), body)

/** The schema of each `name/number` that this version reads. */
export const schemas: ReadonlyMap<string, Schema.Top> = new Map(
  Object.entries(messages).flatMap(([name, { former, schema }]: [string, Line]) =>
    [...former, { schema }].map((form, i) => [`${name}/${i + 1}`, form.schema] as const)
  )
)

type Decode = (json: unknown) => Exit.Exit<object, Schema.SchemaError>

const decoders: ReadonlyMap<string, Decode> = new Map(
  [...schemas].map(([type, schema]) => [
    type,
    Schema.decodeUnknownExit(schema as unknown as Schema.ConstraintCodec<object, unknown>)
  ])
)
