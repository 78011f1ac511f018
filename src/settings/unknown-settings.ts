// Finds settings with unknown names. Most are typing errors, which would silently leave a default
// in force. Pure.
import type { SourceShape } from "./source.ts"

/**
 * Settings outside the service's tables: of the search for a nats-server and of the command line.
 */
const elsewhere = ["BELLCAST_NATS_SERVER", "BELLCAST_TOKEN", "BELLCAST_URL", "BELLCAST_USER"]
const onlyInEnvironment = /^BELLCAST_(CONFIG$|TEST_)/

/** Edit distance: letters to insert, delete, change, or swap with their neighbour. */
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

/** The known name that was probably meant. Undefined: all differ in more than a third. */
const closest = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const bare = (each: string) => each.replace(/^BELLCAST_/, "")
  const ranked = known
    .map((each) => ({ each, far: distance(bare(name), bare(each)) }))
    .sort((a, b) => a.far - b.far)
  const [first] = ranked
  return first !== undefined && first.far * 3 <= bare(first.each).length ? first.each : undefined
}

const spelled = (name: string, inFile: boolean): string =>
  inFile ? `bellcast.${name.slice("BELLCAST_".length).toLowerCase()}` : name

/**
 * An unknown name is a fault in the file and a warning in the environment: Kubernetes sets
 * BELLCAST_SERVICE_HOST and similar names for a Service called bellcast. A setting of a policy that
 * is off, which `policyOf` names, is always a warning.
 */
export const unknownSettings = (
  { found }: SourceShape,
  names: ReadonlyArray<string>,
  policyOf: (name: string) => string | undefined
) => {
  const known = [...names, ...elsewhere]
  const faults: Array<string> = []
  const warnings: Array<string> = []
  for (const [name, { inFile, place }] of found) {
    if (known.includes(name) || (!inFile && onlyInEnvironment.test(name))) continue
    const policy = policyOf(name)
    if (policy !== undefined) {
      warnings.push(
        `${place}: a setting of the policy ${policy}, which is off: ` +
          "BELLCAST_AUTH_POLICIES does not name it"
      )
      continue
    }
    const meant = closest(name, known)
    const hint = meant === undefined ? "" : `, perhaps ${spelled(meant, inFile)} is meant`
    if (inFile) faults.push(`${place}: No such setting${hint}`)
    else warnings.push(`${place}: no such setting${hint}`)
  }
  return { faults, warnings }
}
