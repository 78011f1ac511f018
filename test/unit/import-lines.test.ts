// A file of an import is cut into lines, wherever the parts end in which it is read.
import { assert, it } from "vitest"
import { linesOf } from "#cli/moving/line.ts"

const read = async (...parts: ReadonlyArray<string>) => {
  const texts: Array<string | undefined> = []
  const input = (async function* () {
    yield* parts
  })()
  for await (const { number, text } of linesOf(input)) {
    texts.push(text)
    assert.equal(number, texts.length)
  }
  return texts
}

it("gives the same lines wherever a part ends, with or without a newline at the end", async () => {
  const text = '\uFEFF{"a":1}\n\n{"b":"\u{1f514}"}\n{"c":3}'
  const lines = ['{"a":1}', "", '{"b":"\u{1f514}"}', '{"c":3}']
  assert.deepEqual(await read(text), lines)
  assert.deepEqual(await read(`${text}\n`), lines)
  for (let at = 0; at <= text.length; at++)
    assert.deepEqual(await read(text.slice(0, at), text.slice(at)), lines)
  assert.deepEqual(await read(), [])
})

it("keeps nothing of a line that is too long, and goes on behind it", async () => {
  const part = "x".repeat(40_000)
  assert.deepEqual(await read("a\n", part, part, part, "x\nb\n"), ["a", undefined, "b"])
  assert.deepEqual(await read(part + part), [undefined])
  assert.deepEqual(await read(`${part}${part}\n${part}`), [undefined, part])
})
