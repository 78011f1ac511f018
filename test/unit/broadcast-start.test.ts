// The times at which broadcasts start.
import { assert, describe, it } from "@effect/vitest"
import {
  delayError,
  delayHeader,
  laterStart,
  startError,
  startHeader
} from "#domain/broadcast-start.ts"
import { millisOf } from "#domain/timestamp.ts"

const now = Date.parse("2026-11-23T12:00:00Z")

describe("a start", () => {
  it("is a time of RFC 3339, in any offset and case, on a day that there is", () => {
    for (const text of ["2026-12-24T18:00:00Z", "2026-12-24t19:00:00+01:00"])
      assert.equal(millisOf(text), Date.parse("2026-12-24T18:00:00Z"))
    assert.equal(millisOf("2024-02-29T00:00:00.123456789z"), Date.parse("2024-02-29T00:00:00.123Z"))
    for (const text of [
      "2026-12-24",
      "2026-12-24T18:00:00",
      "2026-12-24 18:00:00Z",
      "2026-02-29T00:00:00Z",
      "2026-13-01T00:00:00Z",
      "2026-12-24T24:00:00Z",
      "2026-12-24T18:60:00Z",
      "2026-12-24T18:00:00+24:00",
      ""
    ])
      assert.isUndefined(millisOf(text), text)
  })

  it("is at most 30 days ahead, and at most an hour ago", () => {
    for (const text of ["2026-12-23T12:00:00Z", "2026-11-23T11:00:00Z"])
      assert.isUndefined(startError(text, now))
    assert.include(startError("2026-12-23T12:00:00.001Z", now), "30 days")
    assert.include(startError("2026-11-23T10:59:59Z", now), "an hour ago")
    assert.include(startError("soon", now), "RFC 3339")
  })

  it("is waited for if it comes after the broadcast was stored", () => {
    const later = (text: string) =>
      laterStart((name) => (name === startHeader ? text : undefined), now)
    assert.deepEqual(later("2026-11-23T12:00:00.001Z"), { at: "2026-11-23T12:00:00.001Z" })
    assert.isUndefined(later("2026-11-23T12:00:00Z"))
    assert.isUndefined(laterStart(() => undefined, now))
  })

  it("is so many seconds after the broadcast was stored, of 1 to 3600", () => {
    const delayed = (text: string) => (name: string) => (name === delayHeader ? text : undefined)
    assert.deepEqual(laterStart(delayed("10"), now), { at: "2026-11-23T12:00:10.000Z" })
    for (const text of ["1", "3600"]) assert.isUndefined(delayError(delayed(text)))
    for (const text of ["", "0", "01", "3601", "-1", "1.5", "10 s"]) {
      assert.include(delayError(delayed(text)), "from 1 to 3600", text)
      assert.isUndefined(laterStart(delayed(text), now), text)
    }
    assert.include(
      delayError(() => "10"),
      "exclude each other"
    )
  })
})
