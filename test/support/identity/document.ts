// The examples of the documents about identity: blocks of settings, and commands that send a
// request.
import { textOf } from "../documents.ts"

/** Each section of a document by its heading: the text up to the next heading. */
export const sectionsOf = (path: string): ReadonlyMap<string, string> => {
  const sections = new Map<string, string>()
  let heading = ""
  let isCode = false
  for (const line of textOf(path).split("\n")) {
    if (line.startsWith("```")) isCode = !isCode
    const [, title] = (isCode ? null : /^#+ (.*)$/.exec(line)) ?? []
    heading = title ?? heading
    sections.set(heading, `${sections.get(heading) ?? ""}${title === undefined ? `${line}\n` : ""}`)
  }
  return sections
}

/** The blocks of a section in this language. */
export const blocksOf = (section: string, language: string): ReadonlyArray<string> =>
  [...section.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms"))].map(
    ([, text]) => text!
  )

type Environment = Readonly<Record<string, string>>

/** The settings of a block; undefined: it holds something else. */
const settingsOf = (block: string): Environment | undefined => {
  const lines = block.trimEnd().split("\n")
  const pairs = lines.map((line) => /^(BELLCAST_\w+)=(?:"([^"]*)"|(\S*))$/.exec(line))
  if (pairs.some((pair) => pair === null)) return undefined
  return Object.fromEntries(pairs.map((pair) => [pair![1]!, pair![2] ?? pair![3]!]))
}

/** The blocks of settings of a section. */
export const settingsIn = (section: string): ReadonlyArray<Environment> =>
  blocksOf(section, "sh")
    .map(settingsOf)
    .filter((found) => found !== undefined)

/** The commands of a section that send a request. */
export const requestsIn = (section: string): ReadonlyArray<string> =>
  blocksOf(section, "sh").filter((block) => /^curl /m.test(block))
