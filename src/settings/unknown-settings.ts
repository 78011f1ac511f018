// Settings that nobody asks for: most are typing errors, and would otherwise leave a default in force without a word. Pure.
import { formerNames, type SourceShape } from "./source.ts"

/** Asked for by others than the service's tables: the search for a nats-server, the command line, the tests. */
const elsewhere = ["BELLCAST_NATS_SERVER", "BELLCAST_URL", "BELLCAST_USER"]
const onlyInEnvironment = /^BELLCAST_(CONFIG$|TEST_)/

/** Letters to put in, take out, change, or swap with their neighbour. */
const distance = (a: string, b: string): number => {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const [above, row] = [rows[i - 1]!, [i]]
    for (let j = 1; j <= b.length; j++) {
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(
        Math.min(
          above[j]! + 1,
          row[j - 1]! + 1,
          above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1),
          swapped ? rows[i - 2]![j - 2]! + 1 : Infinity
        )
      )
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}

/** The known name that was probably meant; none when even the closest differs in more than a third. */
const closest = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const bare = (each: string) => each.replace(/^BELLCAST_/, "")
  const ranked = known
    .map((each) => ({ each, far: distance(bare(name), bare(each)) }))
    .sort((a, b) => a.far - b.far)
  const [first] = ranked
  return first !== undefined && first.far * 3 <= bare(first.each).length ? first.each : undefined
}

/**
 * The file is ours alone, so a stranger in it is a fault. The environment is not: Kubernetes puts BELLCAST_SERVICE_HOST and its like there
 * for a Service called bellcast, so strangers in it are only worth a warning.
 */
export const strangersOf = ({ found }: SourceShape, names: ReadonlyArray<string>) => {
  const known = [...names, ...elsewhere]
  const faults: Array<string> = []
  const warnings: Array<string> = []
  for (const [name, { inFile, place }] of found) {
    const present = formerNames[name]
    if (present !== undefined) {
      warnings.push(`${place}: the former name of ${present}, still understood`)
      continue
    }
    if (known.includes(name) || (!inFile && onlyInEnvironment.test(name))) continue
    const meant = closest(name, known)
    const hint =
      meant === undefined
        ? ""
        : `, perhaps ${inFile ? `bellcast.${meant.slice("BELLCAST_".length).toLowerCase()}` : meant} is meant`
    if (inFile) faults.push(`${place}: No such setting${hint}`)
    else warnings.push(`${place}: no such setting${hint}`)
  }
  return { faults, warnings }
}
