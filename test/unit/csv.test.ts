// Rows as CSV: what RFC 4180 wants quoted.
import { assert, it } from "vitest"
import { csvOf } from "#basics/csv.ts"

it("quotes what would end a cell or a line, and leaves missing cells empty", () => {
  const rows = [
    ["a", 0, undefined],
    ["a,b", 'say "x"', "1\r\n2"]
  ]
  assert.equal(
    csvOf(["one", "two", "three"], rows),
    'one,two,three\r\na,0,\r\n"a,b","say ""x""","1\r\n2"\r\n'
  )
  assert.equal(csvOf(["one", "two"], []), "one,two\r\n")
})
