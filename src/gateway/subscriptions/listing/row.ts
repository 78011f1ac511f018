// An object of a list as filters, sorting and answers see it: what its owner stored, and beside it
// what the server says about it. The two are not copied into one: copying 50 objects of 1,700 fields
// takes 50 ms.
import type { SubscriptionList } from "#domain/subscription.ts"
import { isObject, type JsonObject, valueAt } from "./value.ts"

export interface Row {
  /** `id`, `last_modified`, and `deleted` of a tombstone. They win over stored fields. */
  readonly own: JsonObject
  readonly data: JsonObject
}

export const rowsOf = (list: SubscriptionList): ReadonlyArray<Row> =>
  Object.entries(list.subscriptions).map(([id, { data, lastModified }]) => ({
    own: { id, last_modified: lastModified },
    data
  }))

export const tombstoneRowsOf = (list: SubscriptionList): ReadonlyArray<Row> =>
  Object.entries(list.tombstones).map(([id, lastModified]) => ({
    own: { id, last_modified: lastModified, deleted: true },
    data: {}
  }))

/** The value of a field; undefined when it is missing. */
export const fieldOf = ({ data, own }: Row, field: string): unknown =>
  Object.hasOwn(own, field) ? own[field] : valueAt(data, field)

/** Adds the fields that are there to `to`. Names that go into the same object go there together. */
const copy = (from: JsonObject, to: Map<string, unknown>, names: ReadonlyArray<string>): void => {
  const inner = new Map<string, Array<string>>()
  for (const name of names) {
    const dot = name.indexOf(".")
    const head = name.slice(0, dot)
    if (Object.hasOwn(from, name)) to.set(name, from[name])
    else if (dot !== -1) {
      const rest = inner.get(head)
      if (rest === undefined) inner.set(head, [name.slice(dot + 1)])
      else rest.push(name.slice(dot + 1))
    }
  }
  for (const [head, rest] of inner) {
    const found = Object.hasOwn(from, head) && !to.has(head) ? from[head] : undefined
    if (!isObject(found)) continue
    const part = new Map<string, unknown>()
    copy(found, part, rest)
    // Object.fromEntries defines properties: a field called __proto__ stays a field.
    if (part.size > 0) to.set(head, Object.fromEntries(part))
  }
}

/** The parts of an object that `_fields` names; undefined: all of it. */
export const project = (
  { data, own }: Row,
  fields: ReadonlyArray<string> | undefined
): JsonObject => {
  if (fields === undefined) return { ...data, ...own }
  const projected = new Map<string, unknown>()
  copy(data, projected, Object.hasOwn(own, "deleted") ? fields : [...fields, "deleted"])
  // Which object this is, when it changed, and whether it is a tombstone is never left out.
  return { ...Object.fromEntries(projected), ...own }
}

/** The JSON text of {@link project}. The text of a large object is not made from a copy of it. */
export const textOf = (row: Row, fields: ReadonlyArray<string> | undefined): string => {
  const { data, own } = row
  const isCopied = fields !== undefined || Object.keys(own).some((key) => Object.hasOwn(data, key))
  const text = JSON.stringify(isCopied ? project(row, fields) : data)
  if (isCopied) return text
  const rest = JSON.stringify(own)
  return text === "{}" ? rest : `${text.slice(0, -1)},${rest.slice(1)}`
}
