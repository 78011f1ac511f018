// The index of an author's drafts, and the header by which a broadcast ends one.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  type Drafts,
  draftHeaders,
  draftOf,
  endDraft,
  formIn,
  noDrafts,
  storeDraft
} from "#domain/draft.ts"
import type { UserToken } from "#streams/tokens.ts"

const user = "u".repeat(22) as UserToken

const changes = fc.array(
  fc.record({ id: fc.constantFrom("a", "b", "c"), is: fc.constantFrom("put", "delete") }),
  { maxLength: 30 }
)

const apply = (index: Drafts, id: string, is: string, seq: number) =>
  is === "put" ? storeDraft(index, id, seq) : endDraft(index, id, seq)

describe("the index of drafts", () => {
  it("has the last form of each draft, the oldest change first, after any changes", () => {
    fc.assert(
      fc.property(changes, (all) => {
        let index = noDrafts
        const last = new Map<string, number>()
        for (const [i, { id, is }] of all.entries()) {
          index = apply(index, id, is, i + 1)
          if (is === "put") last.set(id, i + 1)
          else last.delete(id)
        }
        const expected = [...last].sort(([, a], [, b]) => a - b)
        assert.deepEqual(index.drafts, expected)
        assert.equal(index.seq, expected.at(-1)?.[1] ?? 0)
      })
    )
  })

  it("is the same when messages are applied again from anywhere", () => {
    fc.assert(
      fc.property(changes, fc.nat(30), (all, from) => {
        const fold = (index: Drafts, since: number) =>
          all.reduce((before, { id, is }, i) => {
            return i < since ? before : apply(before, id, is, i + 1)
          }, index)
        const once = fold(noDrafts, 0)
        assert.deepEqual(fold(once, from), once)
      })
    )
  })

  it("is the same from the messages alone that were not replaced", () => {
    fc.assert(
      fc.property(changes, (all) => {
        const whole = all.reduce((index, { id, is }, i) => apply(index, id, is, i + 1), noDrafts)
        const left = whole.drafts.reduce((index, [id, seq]) => storeDraft(index, id, seq), noDrafts)
        assert.deepEqual(left, whole)
      })
    )
  })

  it("keeps a form that was stored after the one that a broadcast ends", () => {
    const index = storeDraft(storeDraft(noDrafts, "a", 3), "a", 7)
    assert.equal(formIn(endDraft(index, "a", 3), "a"), 7)
    assert.equal(formIn(endDraft(index, "a", 7), "a"), undefined)
  })
})

describe("the header of a broadcast that was a draft", () => {
  it("names the form", () => {
    const form = { user, id: "an-Id_1", seq: 12 }
    const headers = draftHeaders(form)
    assert.deepEqual(
      draftOf((name) => headers[name]),
      form
    )
  })

  for (const text of ["", `${user} a`, `${user} a 0`, `${user} a.b 1`, `x a 1`, `${user} a 1 2`])
    it(`is none as "${text}"`, () => {
      assert.equal(
        draftOf(() => text),
        undefined
      )
    })

  it("is none where it is missing", () => {
    assert.equal(
      draftOf(() => undefined),
      undefined
    )
  })
})
