// The documents of the project: every Markdown file, by path from its root.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

export const projectRoot = new URL("../../", import.meta.url).pathname

const folders = ["", ".github", "streams", "src", "test"]

/** Paths of the Markdown files. */
export const documentPaths: ReadonlyArray<string> = folders.flatMap((folder) =>
  readdirSync(join(projectRoot, folder), { encoding: "utf8", recursive: folder !== "" })
    .filter((file) => file.endsWith(".md") && !file.includes("node_modules"))
    .map((file) => join(folder, file))
)

/** Paths of the TypeScript and JavaScript files of the service. */
export const sourcePaths: ReadonlyArray<string> = ["streams", "src"].flatMap((folder) =>
  readdirSync(join(projectRoot, folder), { encoding: "utf8", recursive: true })
    .filter((file) => /\.([jt]s|tsx)$/.test(file))
    .map((file) => join(folder, file))
)

export const textOf = (path: string): string => readFileSync(join(projectRoot, path), "utf8")

/** The cells of the table with this first heading. */
export const rowsOf = (text: string, heading: string): ReadonlyArray<ReadonlyArray<string>> => {
  const table = text.split("\n\n").find((part) => part.startsWith(`| ${heading} |`)) ?? ""
  const rows = table.trimEnd().split("\n").slice(2)
  return rows.map((row) => row.split("|").slice(1, -1))
}

/** `status errno code` of every error in the table of errors of a document. */
export const documentedErrors = (path: string): ReadonlyArray<string> =>
  rowsOf(textOf(path), "error_code").flatMap(([codes = "", status, errno]) =>
    spansOf(codes).map((code) => `${Number(status)} ${Number(errno)} ${code}`)
  )

/** The code spans of a cell or line. */
export const spansOf = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, span]) => span!)
