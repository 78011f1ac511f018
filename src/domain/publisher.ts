// Who may publish on a channel: principals whom an operator named for it. Pure.
import { Schema } from "effect"

/** As the bucket has it. */
export const Publishers = Schema.Struct({ v: Schema.Literal(1), principals: Schema.Array(Schema.String) })
export type Publishers = typeof Publishers.Type

export const noPublishers: Publishers = { v: 1, principals: [] }

/** So many of the longest still fit into a value of the bucket (64 KiB). */
export const publishersMax = 200
const principalBytesMax = 300

/** Why a text is no principal: `<policy>:<id>`, system.Authenticated or system.Everyone. */
export const principalFault = (principal: string): string | undefined => {
  if (Buffer.byteLength(principal) > principalBytesMax) return `a principal has at most ${principalBytesMax} bytes`
  if (/^system\.(Authenticated|Everyone)$|^(?!system:)[a-z0-9_-]+:[^\s,"\\]+$/.test(principal)) return undefined
  return "a principal is basicauth:<id> as GET /v1/ shows it to its user, or system.Authenticated"
}

/** Undefined when nothing changes. */
export const withPublisher = ({ principals }: Publishers, principal: string, on: boolean): Publishers | undefined => {
  if (principals.includes(principal) === on) return undefined
  return { v: 1, principals: on ? [...principals, principal].sort() : principals.filter((each) => each !== principal) }
}
