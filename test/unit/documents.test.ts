// What the documents point at exists: relative links, headings, files and folders named in code
// spans, and names in these files. And they can be read: the first two in ten minutes, cells of
// tables in two sentences.
import { existsSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { assert, describe, it } from "vitest"
import { documentPaths, projectRoot, textOf } from "../support/documents.ts"

const withoutBlocks = (text: string): string => text.replace(/^```.*?^```$/gms, "")

/** As GitHub names the anchor of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(" ", "-")

const anchorsOf = (path: string): ReadonlyArray<string> =>
  [...withoutBlocks(textOf(path)).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchorOf(heading!))

const linksOf = (path: string): ReadonlyArray<string> =>
  [...withoutBlocks(textOf(path)).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link!)
    .filter((link) => !/^[a-z]+:/.test(link))

/** Where a code span of a document may point: beside it, or below these folders. */
const basesOf = (path: string): ReadonlyArray<string> => [dirname(path), ".", "src", "test"]

/** A path with a slash that ends in a known suffix or in a slash, without placeholders. */
const isPath = (span: string): boolean =>
  /^[\w.-]+(\/[\w.-]+)*(\/|\/[\w.-]+\.(ts|js|json|md|yml|yaml|go))$/.test(span) ||
  /^\.\.\/[\w./-]+\/$/.test(span) ||
  /^[\w.-]+\.test\.ts$/.test(span)

/** Made by a running service, not part of the project. */
const isMade = (span: string): boolean =>
  /^(\.?(bellcast|tools|node_modules)\b|\.torture\/)/.test(span)

const pathsNamedIn = (path: string): ReadonlyArray<string> =>
  [...withoutBlocks(textOf(path)).matchAll(/`([^`\n]+)`/g)]
    .map(([, span]) => span!)
    .filter((span) => isPath(span) && !isMade(span))

/** The file that a code span of a document names; undefined: there is none. */
const fileOf = (path: string, span: string): string | undefined =>
  basesOf(path)
    .map((base) => join(base, span))
    .find((file) => existsSync(join(projectRoot, file)))

interface Named {
  readonly name: string
  readonly file: string
}

/** `name` of `file`, or in it; also several names, and calls. */
const beside = /((?:`\w+(?:\([^`]*\))?`(?:, | and )?)+)\s+(?:in|of)\s+`([\w./-]+\.[jt]s)`/g
/** A step or point that begins with a file and a colon. */
const step = /^ *(?:\d+\.|-) `([\w./-]+\.[jt]s)`[^:`]*:(.*?)(?=\n\n|\n *(?:\d+\.|-) )/gms
/** In a step, words with one capital or none may be those of HTTP or of a user. */
const camelCase = /`([A-Za-z]\w*[a-z][A-Z]\w*)`(?!\s+(?:of|in)\s+`)/g

const namedIn = (path: string): ReadonlyArray<Named> => {
  const text = withoutBlocks(textOf(path))
  return [
    ...[...text.matchAll(beside)].flatMap(([, names, file]) =>
      [...names!.matchAll(/`(\w+)/g)].map(([, name]) => ({ name: name!, file: file! }))
    ),
    ...[...text.matchAll(step)].flatMap(([, file, rest]) =>
      [...rest!.matchAll(camelCase)].map(([, name]) => ({ name: name!, file: file! }))
    )
  ]
}

/** Whether a file makes a constant, function, type or member of this name: an import does not. */
const makes = (file: string, name: string): boolean => {
  const made = String.raw`\b(?:const|let|function\*?|interface|type|class) ${name}\b`
  const member = String.raw`^ +(?:(?:readonly|static|async) )*[#*]?${name}\??[(:<]`
  return new RegExp(`${made}|${member}`, "m").test(textOf(file))
}

/** Whether a relative link of a document leads to a file, and to a heading that the file has. */
const leadsSomewhere = (path: string, link: string): boolean => {
  const [file = "", anchor] = link.split("#")
  const target = file === "" ? path : normalize(join(dirname(path), file))
  if (!existsSync(join(projectRoot, target))) return false
  return anchor === undefined || anchorsOf(target).includes(anchor)
}

/** Whether the `token` of a page tells the end of a session and a failure from a token. */
const tokenIn = (path: string) => {
  const text = textOf(path)
  const [, token = ""] = /^ *token: async (.*?)^ *}?$(?=\n *}\))/ms.exec(text) ?? []
  return {
    fetches: text.includes('fetch("/push-token")'),
    isWhole: token.includes("status === 401) return null") && token.includes("if (!response.ok)")
  }
}

const linesOf = (path: string): ReadonlyArray<string> => withoutBlocks(textOf(path)).split("\n")

const cellsOf = (path: string): ReadonlyArray<string> =>
  linesOf(path)
    .filter((line) => line.startsWith("|"))
    .flatMap((line) => line.split(/(?<!\\)\|/).slice(1, -1))

/** A sentence ends where blanks follow its full stop. Code spans count as a word. */
const sentencesOf = (cell: string): number =>
  cell
    .trim()
    .replace(/`[^`]*`/g, "x")
    .split(/[.!?]\)?(?:\*\*)?\s+(?=\S)/).length

describe("the documents", () => {
  it("link only to what exists", () => {
    const broken = documentPaths.flatMap((path) =>
      linksOf(path)
        .filter((link) => !leadsSomewhere(path, link))
        .map((link) => `${path}: ${link}`)
    )
    assert.deepEqual(broken, [])
  })

  it("name only files and folders that exist", () => {
    const named = documentPaths.flatMap((path) =>
      pathsNamedIn(path).map((span) => [path, span] as const)
    )
    assert.isAbove(named.length, 50)
    const missing = named.filter(([path, span]) => fileOf(path, span) === undefined)
    assert.deepEqual(missing, [])
  })

  it("name only what is in the file beside the name", () => {
    const named = documentPaths.flatMap((path) => namedIn(path).map((each) => ({ path, ...each })))
    assert.isAbove(named.length, 20)
    const missing = named.filter(({ file, name, path }) => {
      const found = fileOf(path, file)
      return found === undefined || !makes(found, name)
    })
    assert.deepEqual(missing, [])
  })

  it("show a conformance case with the keys that a case has", () => {
    const [, example = ""] = /^```ts\n(define\(.*?)^```$/ms.exec(textOf("test/README.md")) ?? []
    const table = textOf("test/conformance/table.ts")
    const keys = [...example.matchAll(/\b(\w+): /g)].map(([, key]) => key!)
    assert.includeMembers(keys, ["name", "request", "expected", "status"])
    const sent = ["method", "path"]
    for (const key of keys.filter((each) => !sent.includes(each)))
      assert.match(table, new RegExp(`readonly ${key}\\??: `), key)
  })

  it("and `bellcast client` give connect a token that keeps apart why there is none", () => {
    const paths = [...documentPaths, "src/cli/client.ts"]
    const texts = paths.map((path) => ({ path, ...tokenIn(path) }))
    const fetching = texts.filter(({ fetches }) => fetches)
    assert.isAtLeast(fetching.length, 4)
    for (const { isWhole, path } of fetching) assert.isTrue(isWhole, path)
  })

  it("of a folder say in their first paragraph for whom they are", () => {
    for (const path of documentPaths.filter((each) => each.endsWith("/README.md")))
      assert.match(textOf(path), /^# .+\n\nFor /, path)
  })

  it("that everybody reads first are read in ten minutes: 3,500 words", () => {
    const text = textOf("README.md") + textOf("src/README.md")
    assert.isAtMost(text.split(/\s+/).length, 3_500)
  })

  it("have no line of more than 300 characters outside tables", () => {
    const long = documentPaths.flatMap((path) =>
      linesOf(path)
        .filter((line) => line.length > 300 && !line.startsWith("|"))
        .map((line) => `${path}: ${line}`)
    )
    assert.deepEqual(long, [])
  })

  it("have no cell of a table with more than two sentences", () => {
    const long = documentPaths.flatMap((path) =>
      cellsOf(path)
        .filter((cell) => sentencesOf(cell) > 2)
        .map((cell) => `${path}: ${cell}`)
    )
    assert.deepEqual(long, [])
  })
})
