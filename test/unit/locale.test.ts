// Language tags, and which variant of a broadcast is for which reader.
import { assert, describe, it } from "vitest"
import { isLocale, lookupLocale } from "#domain/broadcast.ts"

describe("a language tag", () => {
  for (const tag of ["de", "pt-BR", "zh-Hant-TW", "sr-Latn-RS", "es-419", "DE-ch", "de-x-mine"])
    it(`may be ${tag}`, () => assert.isTrue(isLocale(tag)))
  for (const text of [
    "",
    "d",
    "de_DE",
    "de-",
    "zh-yue",
    "i-klingon",
    "x-private",
    "*",
    "de DE",
    "Grüße",
    `de-${"x".repeat(40)}`,
    "de\u0000"
  ])
    it(`is not ${JSON.stringify(text)}`, () => assert.isFalse(isLocale(text)))
})

describe("the lookup of RFC 4647 section 3.4", () => {
  const found = (locale: string, ...tags: ReadonlyArray<string>) =>
    lookupLocale(locale, (tag) => tags.find((each) => each.toLowerCase() === tag))

  it("takes the most exact tag there is, in any case of letters", () => {
    assert.equal(found("de-CH", "de", "de-CH"), "de-CH")
    assert.equal(found("DE-ch-1996", "de", "de-CH"), "de-CH")
    assert.equal(found("de-CH", "DE"), "DE")
  })

  it("finds nothing that is more exact than what is asked for, or another language", () => {
    assert.isUndefined(found("de", "de-DE"))
    assert.isUndefined(found("", "de"))
    assert.isUndefined(found("den", "de"))
  })

  it("cuts off a single letter with what follows it, as the example of the RFC", () => {
    const tried: Array<string> = []
    lookupLocale("zh-Hant-CN-x-private1-private2", (tag) => void tried.push(tag))
    assert.deepEqual(tried, [
      "zh-hant-cn-x-private1-private2",
      "zh-hant-cn-x-private1",
      "zh-hant-cn",
      "zh-hant",
      "zh"
    ])
  })
})
