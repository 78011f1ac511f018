// Who may import whom: the floors in src/README.md against the imports of src/ and streams/.
import { existsSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { assert, describe, it } from "vitest"
import { bundles } from "#browser/serving/files.ts"
import { projectRoot, sourcePaths, textOf } from "../support/documents.ts"

/** A room of the house. Its floors are lists of files and folders, the top one first. */
interface Room {
  readonly folder: string
  readonly floors: ReadonlyArray<ReadonlyArray<string>>
}

const readme = textOf("src/README.md")

/** The block ```text below a heading; its lines hold blanks between words. */
const blockBelow = (heading: string): string => {
  const section = readme.split(`\n### ${heading}\n`)[1]?.split(/\n##+ /)[0] ?? ""
  return /```text\n(.*?)```/s.exec(section)?.[1] ?? ""
}

const wordsOf = (line: string): ReadonlyArray<string> => line.trim().split(/\s+/)

/** A line at the margin names a room; the indented ones below it are its floors. */
const roomsOf = (block: string): ReadonlyArray<Room> => {
  const rooms: Array<{ folder: string; floors: Array<ReadonlyArray<string>> }> = []
  for (const line of block.split("\n").filter((text) => text.trim() !== ""))
    if (line.startsWith(" ")) rooms.at(-1)!.floors.push(wordsOf(line))
    else rooms.push({ folder: line.trim().replace(/\/$/, ""), floors: [] })
  return rooms
}

const rooms = roomsOf(blockBelow("Floors"))

/** A package or a module of Node.js, and the folders whose files may import it. */
interface Door {
  readonly name: string
  readonly open: ReadonlyArray<string>
  /** Folders in open ones that may not. */
  readonly shut: ReadonlyArray<string>
}

const doorOfLine = (line: string): Door => {
  const [name = "", ...folders] = wordsOf(line)
  const shut = folders.filter((folder) => folder.startsWith("!")).map((folder) => folder.slice(1))
  return { name, open: folders.filter((folder) => !folder.startsWith("!")), shut }
}

/** The longest name first, as it counts. */
const doors = blockBelow("Doors")
  .split("\n")
  .filter((line) => line.trim() !== "")
  .map(doorOfLine)
  .sort((a, b) => b.name.length - a.name.length)

const aliases: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(join(projectRoot, "package.json"), "utf8")
).imports

/** Plain scripts of `src/browser/` import others by their addresses, of which some are made. */
const made: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(bundles).map(([path, { from }]) => [`src/browser/${path}`, `src/browser/${from}`])
)

/** The file that an import names; undefined: a package or a module of Node.js. */
const targetOf = (file: string, name: string): string | undefined => {
  if (name.startsWith(".")) {
    const path = normalize(join(dirname(file), name))
    return made[path] ?? path
  }
  if (!name.startsWith("#")) return undefined
  const [alias, path] = Object.entries(aliases).find(
    ([each]) => each === name || (each.endsWith("*") && name.startsWith(each.slice(0, -1)))
  )!
  return normalize(path.replace("*", name.slice(alias.length - 1)))
}

interface Import {
  readonly from: string
  readonly name: string
  readonly to: string | undefined
}

const importing =
  /(?:^(?:import|(?:import|export)\b[^"';]*?from) |\b(?:getBuiltinModule|import)\(\s*)"([^"]+)"/gms

const namesIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(importing)].map(([, name]) => name!)

/** All imports, of types too. */
const imports: ReadonlyArray<Import> = sourcePaths.flatMap((from) =>
  namesIn(textOf(from)).map((name) => ({ from, name, to: targetOf(from, name) }))
)

it("imports are seen in every form", () => {
  const forms = [
    'import "a"',
    'import type { B } from "b"',
    'export {\n  c\n} from "c"',
    'const d = process.getBuiltinModule("d")',
    'const e = await import("e")',
    'type F = typeof import("f")',
    'const g = import(\n  "g"\n)',
    '/** @type {import("h").H | import("i").I} */'
  ]
  assert.deepEqual(namesIn(forms.join("\n")), ["a", "b", "c", "d", "e", "f", "g", "h", "i"])
})

/** The word of a room that stands for a file: the file itself, or the folder that it is in. */
const wordIn = ({ folder }: Room, path: string): string | undefined => {
  const inner = folder === "." ? path : path.slice(folder.length + 1)
  return folder === "." || path.startsWith(`${folder}/`) ? inner.split("/")[0] : undefined
}

const floorOf = ({ floors }: Room, word: string): number =>
  floors.findIndex((floor) => floor.includes(word))

const isIn = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(`${folder}/`)

describe.each(rooms)("the floors of $folder", (room) => {
  const within = sourcePaths.flatMap((path) => wordIn(room, path) ?? [])

  it("name every file and folder of it, and nothing else", () => {
    const named = room.floors.flat()
    assert.sameMembers([...named], [...new Set(within)])
  })

  it("are imported from above only", () => {
    const upwards = imports.flatMap(({ from, to }) => {
      if (to === undefined || !sourcePaths.includes(to)) return []
      const [above, below] = [wordIn(room, from), wordIn(room, to)]
      if (above === undefined || below === undefined || above === below) return []
      return floorOf(room, above) < floorOf(room, below) ? [] : [`${from} imports ${to}`]
    })
    assert.deepEqual(upwards, [])
  })
})

/** The cycles of a graph. */
const cyclesOf = (
  edges: ReadonlyArray<readonly [from: string, to: string]>
): ReadonlyArray<string> => {
  const below = new Map<string, Set<string>>()
  for (const [from, to] of edges) below.set(from, (below.get(from) ?? new Set()).add(to))
  const done = new Set<string>()
  const cycles: Array<string> = []
  const visit = (place: string, way: ReadonlyArray<string>) => {
    if (way.includes(place)) cycles.push([...way.slice(way.indexOf(place)), place].join(" -> "))
    if (done.has(place) || way.includes(place)) return
    for (const next of below.get(place) ?? []) visit(next, [...way, place])
    done.add(place)
  }
  for (const place of below.keys()) visit(place, [])
  return cycles
}

it("no file imports itself by way of others, types included", () => {
  const edges = imports.flatMap(({ from, to }) => (to === undefined ? [] : [[from, to] as const]))
  assert.deepEqual(cyclesOf(edges), [])
})

/** The folder below `folder` that a file is in, or `folder` itself. */
const placeIn = (folder: string, path: string): string => {
  const [child, ...rest] = path.slice(folder.length + 1).split("/")
  return rest.length === 0 ? folder : `${folder}/${child}`
}

it("no folder imports itself by way of others, unless floors order the files in it", () => {
  const folders = [...new Set(sourcePaths.map(dirname))]
  const cycles = folders
    .filter((folder) => !rooms.some((room) => room.folder === folder))
    .flatMap((folder) =>
      cyclesOf(
        imports.flatMap(({ from, to }) => {
          if (to === undefined || !isIn(from, folder) || !isIn(to, folder)) return []
          const [above, below] = [placeIn(folder, from), placeIn(folder, to)]
          return above === below ? [] : [[above, below] as const]
        })
      )
    )
  assert.deepEqual(cycles, [])
})

it("packages and modules of Node.js are imported only where a door for them is", () => {
  const wrong = imports.flatMap(({ from, name, to }) => {
    if (to !== undefined) return []
    const door = doors.find((each) => name.startsWith(each.name))
    const isOpen = door?.open.some((folder) => isIn(from, folder))
    const isShut = door?.shut.some((folder) => isIn(from, folder))
    return isOpen === true && isShut === false ? [] : [`${from} imports ${name}`]
  })
  assert.deepEqual(wrong, [])
})

it("every file that an import names is there", () => {
  const gone = imports.filter(({ to }) => to !== undefined && !existsSync(join(projectRoot, to)))
  assert.deepEqual(gone, [])
})
