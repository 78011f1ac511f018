// Regular expressions take time in proportion to the text, whatever strangers choose: every one in
// the sources is examined as an automaton. Not measured, so a slow machine fails nothing.

import fc from "fast-check"
import { checkSync } from "recheck"
import { parseAst } from "rolldown/parseAst"
import { assert, describe, it } from "vitest"
import { matchesGlob } from "#basics/wildcard.ts"
import { sourcePaths, textOf } from "../support/documents.ts"

interface Pattern {
  readonly path: string
  readonly source: string
  readonly flags: string
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** All nodes of a syntax tree. */
const nodesOf = function* (node: unknown): Generator<Readonly<Record<string, unknown>>> {
  if (!isObject(node)) return
  yield node
  for (const child of Object.values(node)) yield* nodesOf(child)
}

const treeOf = (path: string) =>
  parseAst(textOf(path), {
    lang: path.endsWith(".ts") ? "ts" : path.endsWith(".js") ? "js" : "tsx"
  })

const nodes = sourcePaths
  .filter((path) => !path.endsWith(".d.ts"))
  .flatMap((path) => [...nodesOf(treeOf(path))].map((node) => ({ path, node })))

const patterns = nodes.flatMap(({ node, path }): ReadonlyArray<Pattern> => {
  const regex = node["regex"] as { readonly pattern: string; readonly flags: string } | undefined
  return regex === undefined ? [] : [{ path, source: regex.pattern, flags: regex.flags }]
})

/** Files that make patterns of a text, and whose text it is. */
const made = {
  "src/cli/keys/env-file.ts": "a name of ours, in the operator's file",
  "src/gateway/batch.ts": "the version of the API",
  "src/gateway/listing/select.ts": "the operators of filters",
  "src/identity/kinds.ts": "names of settings",
  "src/identity/policies/token.ts": "lengths",
  "src/telemetry/redaction.ts": "parts of one pattern"
}

/** Patterns that take more, and whose text they see. */
const slow: Readonly<Record<string, string>> = {
  "\\/+$": "a URL that the user of the command line, or the site, has set",
  "\\/\\*.*?\\*\\/": "a style sheet of ours",
  "\\s*\\n\\s*": "a style sheet of ours",
  "\\{([^}]+)\\}": "a text of ours",
  "Mac.*Chrome": "the name of the browser that runs it",
  "^bellcast\\.([a-z][a-z0-9_]*)\\s*=\\s*(.*)$": "a line of the operator's file",
  "^[a-z0-9*.-]*[a-z0-9][a-z0-9.-]*(:\\d{1,5})?$": "a setting"
}

/** Patterns with assertions, which no automaton has, and why each takes linear time. */
const asserting: Readonly<Record<string, string>> = {
  '^(?:group:)?(?!(?:system|group):)[a-z0-9_-]+:[^\\s,"\\\\]+$': "the colon ends the first class",
  "^basicauth(?:-[a-z0-9-]*)?:(?![0-9a-f]{64}$)": "the colon ends the class",
  "^::ffff:(?=\\d+\\.\\d+\\.\\d+\\.\\d+$)": "dots end the digits",
  "\\/wpush\\/(?=[^/]+$)": "a slash ends what is looked at",
  "(?<!=|%3d)(=|%3d)+$": "begins nowhere within a run",
  "(?<=\\?token=)([^&]*).*": "matches wherever it begins",
  "^Debian ((?!.*security)\\S+)$": "a file of the machine",
  "^'((?!.*security)[^']*\\/debian\\/?)\\/dists\\/": "a file of the machine"
}

const examined = ({ flags, source }: Pick<Pattern, "source" | "flags">) =>
  checkSync(source, flags.replace("v", "u"), { checker: "automaton", timeout: 120_000 })

/** A pattern without a repetition that has no end takes no more for a longer text. */
const hasRepetition = ({ source }: Pattern) => /[*+]|\{\d+,\}/.test(source)

describe("the patterns in the sources", () => {
  it("are linear, but for those that no stranger reaches", { timeout: 240_000 }, () => {
    assert.isAbove(patterns.length, 150)
    const found = Map.groupBy(patterns.filter(hasRepetition), (each) => examined(each).status)
    const sourcesOf = (status: "vulnerable" | "unknown") => [
      ...new Set(found.get(status)?.map(({ source }) => source))
    ]
    assert.sameMembers(sourcesOf("vulnerable"), Object.keys(slow))
    assert.sameMembers(sourcesOf("unknown"), Object.keys(asserting))
  })

  it("are made of a text in few files", () => {
    const makes = ({ node }: (typeof nodes)[number]) =>
      isObject(node["callee"]) && node["callee"]["name"] === "RegExp"
    assert.deepEqual(
      [...new Set(nodes.filter(makes).map(({ path }) => path))].sort(),
      Object.keys(made).sort()
    )
  })

  it("would not pass with the one that once read headers", () => {
    const degree = "3rd degree polynomial"
    const source = "^Bellcast-Type:[ \\t]*(.*?)[ \\t]*\\r$"
    const found = examined({ source, flags: "m" })
    assert.equal(found.status === "vulnerable" && found.complexity.summary, degree)
  })
})

it("a glob matches what the pattern as a regular expression would", () => {
  const character = fc.constantFrom("a", "b", ".")
  const pattern = fc.string({ unit: fc.constantFrom("a", "b", ".", "*", "?"), maxLength: 8 })
  fc.assert(
    fc.property(pattern, fc.string({ unit: character, maxLength: 10 }), (glob, text) => {
      const source = glob.replaceAll(".", "\\.").replaceAll("*", ".*").replaceAll("?", ".")
      assert.equal(matchesGlob(glob, text), new RegExp(`^${source}$`).test(text))
    }),
    { numRuns: 5_000 }
  )
})
