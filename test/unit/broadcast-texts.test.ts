// The data of a broadcast as lists and pages show it, which may be anything.
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { textCharsMax, textsIn } from "#gateway/broadcasts/content.ts"

const texts = { title: "Fire", body: "Two hours ago", image: "https://example.org/a.png" }

describe("the texts of a broadcast", () => {
  it("are those that a browser shows: of the notification, else of the data", () => {
    assert.deepEqual(textsIn({ web_push: 8030, notification: texts, title: "no" }), texts)
    assert.deepEqual(textsIn({ ...texts, url: "/" }), texts)
    // worker.js looks beside a notification that is none.
    assert.deepEqual(textsIn({ title: "Fire", notification: "no" }), { title: "Fire" })
  })

  it.for([
    ["no data", undefined],
    ["nothing", {}],
    ["no texts", { title: 1, body: null, image: ["x"] }],
    ["empty texts", { title: "", body: "", image: "" }],
    ["a notification without texts", { notification: {}, title: "no" }],
    ["a list", { notification: [] }]
  ] as const)("are absent of %s", ([, data]) => {
    assert.deepEqual(textsIn(data), {})
  })

  it("are cut in lists, but no address, and never within a character", () => {
    const image = `https://example.org/${"a".repeat(1_000)}`
    const title = `${"a".repeat(198)}\u{1F600}bc`
    const shown = { title: `${"a".repeat(198)}…`, body: `${"b".repeat(199)}…` }
    assert.deepEqual(textsIn({ title, body: "b".repeat(201), image }, textCharsMax), shown)
    assert.deepEqual(textsIn({ title, image }), { title, image })
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 400 }), (text) => {
        const { title: cut = "" } = textsIn({ title: text }, textCharsMax)
        assert.isAtMost(cut.length, textCharsMax)
        assert.isTrue(!text.isWellFormed() || cut.isWellFormed())
        if (text.length <= textCharsMax) assert.equal(cut, text)
      })
    )
  })
})
