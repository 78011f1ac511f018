// The commands of compose.yaml and of the documents, so that the tests run what is written there.
import { assert } from "vitest"
import { textOf } from "../support/documents.ts"

const head = textOf("compose.yaml").split("\n\n")[0]!.replaceAll(/^# ?/gm, "")
const blocks = ["README.md", "src/cli/README.md"].flatMap((path) =>
  [...textOf(path).matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text]) => text!)
)

const one = (found: ReadonlyArray<string | undefined>, what: string): string => {
  assert.lengthOf(found, 1, what)
  return found[0]!
}

/** The only block of the documents that contains this text. */
const blockWith = (text: string) =>
  one(
    blocks.filter((each) => each.includes(text)),
    text
  )
/** The only part of the head of compose.yaml that this matches. */
const inHead = (pattern: RegExp) =>
  one(
    [...head.matchAll(pattern)].map(([, command]) => command),
    String(pattern)
  )

export const makeKeys = inHead(/`(make keys .*)`/g)
export const makeKeysWithDocker = inHead(/\(.env must not exist yet\):\n((?: {5}.*\n)+)/g)
export const start = inHead(/^3\. (.*)$/gm)
export const audit = inHead(/^Verbs run in the container: (.*)$/gm)
export const publish = blockWith("curl -i")
export const rebuild = blockWith("bellcast rebuild")
export const backup = blockWith("> streams.tar")
export const restore = blockWith("< streams.tar")
