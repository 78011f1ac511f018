// What an environment file of secrets lacks, and what is never changed in it.
import { assert, it } from "vitest"
import { missingParts } from "#cli/keys/env-file.ts"

const pair = { comment: "pair", values: { PUBLIC: "p", PRIVATE: "q" } }
const secret = { comment: "secret", values: { SECRET: "s" } }
const subject = { comment: "for the operator", values: { SUBJECT: "" } }
const missingIn = (text: string) => missingParts(text, [pair, secret, subject])

it.for([
  ["an empty file", "", ["pair", "secret", "for the operator"]],
  ["a whole file", "PUBLIC=1\nPRIVATE=2\nSECRET=3\nSUBJECT=\n", []],
  ["a comment and another name", "# SECRET=3\nMY_SECRET=3\nSUBJECT=x", ["pair", "secret"]],
  ["a secret without a value", "PUBLIC=1\nPRIVATE=2\nSECRET=\nSUBJECT=", ["secret"]],
  ["exported and indented lines", " export PUBLIC=1\n\tPRIVATE =2\nSECRET=3\nSUBJECT=", []],
  [
    "a value in an earlier line only",
    "SECRET=3\nSECRET=\nPUBLIC=1\nPRIVATE=2\nSUBJECT=",
    ["secret"]
  ]
] as const)("lacks, as %s: %s", ([, text, lacks]) => {
  const { fault, missing } = missingIn(text)
  assert.isUndefined(fault)
  assert.deepEqual(
    missing.map(({ comment }) => comment),
    [...lacks]
  )
})

it("gets no half of a pair", () => {
  const { fault, missing } = missingIn("PUBLIC=1\n")
  assert.equal(fault, "PRIVATE is missing beside the other half of the pair")
  assert.deepEqual(missing, [])
})
