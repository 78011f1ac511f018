// What `--help` calls the value of a flag is what the documents call it, and each such word means
// one form: a flag with TIME takes no span, and one with SPAN no time.
import { readdirSync, readFileSync } from "node:fs"
import { assert, it } from "vitest"
import { runCli } from "../support/run-cli.ts"

interface Verb {
  readonly path: ReadonlyArray<string>
  /** The placeholders of its flags, by flag; empty: the flag takes no value. */
  readonly flags: ReadonlyMap<string, string>
}

const section = (help: string, title: string): string =>
  new RegExp(`^${title}\n((?: .*\n?)*)`, "m").exec(help)?.[1] ?? ""

/** Every verb below `path`, as `--help` describes it. */
const verbsBelow = async (path: ReadonlyArray<string>): Promise<ReadonlyArray<Verb>> => {
  const { stdout } = await runCli([...path, "--help"])
  const flags = new Map(
    [...section(stdout, "FLAGS").matchAll(/^ {2}--([\w-]+)(?: (\S+))?/gm)].map(
      ([, flag, placeholder]) => [flag!, placeholder ?? ""] as const
    )
  )
  const names = [...section(stdout, "SUBCOMMANDS").matchAll(/^ {2}([\w-]+)/gm)]
  const below = await Promise.all(names.map(([, name]) => verbsBelow([...path, name!])))
  return [{ path, flags }, ...below.flat()]
}
const verbs = await verbsBelow([])

/** The placeholders that verbs have for a flag. */
const placeholdersOf = (flag: string): ReadonlyArray<string> =>
  verbs.flatMap(({ flags }) => flags.get(flag) ?? [])

const root = new URL("../../", import.meta.url)
const documents = [
  ...["Makefile", "README.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md"],
  ...["src", "streams"].flatMap((folder) =>
    readdirSync(new URL(folder, root), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".md") || (/^cli\//.test(file) && file.endsWith(".ts")))
      .map((file) => `${folder}/${file}`)
  )
]

it("finds the verbs and their flags", () => {
  assert.isAbove(verbs.length, 35)
  assert.includeMembers(
    verbs.map(({ path }) => path.join(" ")),
    ["publish", "token create", "broadcast list", "keys new"]
  )
})

it("documents call the value of a flag as --help does", () => {
  let seen = 0
  const wrong = documents.flatMap((file) =>
    [
      ...readFileSync(new URL(file, root), "utf8").matchAll(/--([a-z-]+) ([A-Z]{2,})\b(?!_)/g)
    ].flatMap(([text, flag, placeholder]) => {
      const known = placeholdersOf(flag!).filter((word) => word !== "")
      seen += known.length > 0 ? 1 : 0
      return known.length === 0 || known.includes(placeholder!) ? [] : [`${file}: ${text}`]
    })
  )
  assert.deepEqual(wrong, [])
  assert.isAbove(seen, 15)
})

/** A value that a flag with this placeholder must refuse, and how. */
const refused: Readonly<Record<string, readonly [value: string, message: RegExp]>> = {
  TIME: ["90d", /Expected a time such as .*, got 90d/],
  SPAN: ["2026-11-23", /Expected a span .* got 2026-11-23/]
}
/** What a verb needs before it looks at the flag. */
const needed: Readonly<Record<string, ReadonlyArray<string>>> = {
  "channel show --at": ["news"],
  "user show --at": ["anna"],
  "restore --to": ["--from", "2026-11-23"],
  "token create --expires": ["shop"],
  "sign-user --expires": ["anna"]
}
const cases = verbs.flatMap(({ flags, path }) =>
  [...flags].flatMap(([flag, placeholder]) =>
    placeholder in refused ? [[path.join(" "), flag, placeholder] as const] : []
  )
)

it.each(cases)("%s --%s takes a %s only", async (path, flag, placeholder) => {
  const [value, message] = refused[placeholder]!
  const more = needed[`${path} --${flag}`] ?? []
  const { code, stderr } = await runCli([...path.split(" "), ...more, `--${flag}`, value])
  assert.equal(code, 1)
  assert.match(stderr, message)
})

it("no flag of a verb has a text without a word for its form", () => {
  const plain = verbs.flatMap(({ flags, path }) =>
    [...flags].flatMap(([flag, placeholder]) =>
      /^(string|integer|date|float)$/.test(placeholder) ? [`${path.join(" ")} --${flag}`] : []
    )
  )
  assert.deepEqual(plain, [])
})
