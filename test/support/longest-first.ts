// The order in which test files begin. A file that waits for minutes and begins last keeps the
// other workers idle, and vitest knows how long a file takes only where it ran before.
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Files that take longer than 20 s, whatever else runs, the longest first. */
export const longest = [
  "integration/standstill",
  "conformance/policies",
  "integration/forgotten-registrations",
  "integration/pause-when",
  "integration/events",
  "integration/pause",
  "integration/rate-shards",
  "integration/faults",
  "integration/rate",
  "conformance/two-gateways",
  "integration/forgotten-channels",
  "conformance/contract",
  "integration/crash",
  "integration/workers-killed",
  "integration/schedule-crash",
  "integration/http2-silent",
  "integration/full-disk",
  "integration/pause-killed",
  "integration/cancel",
  "integration/fair",
  "integration/outcomes",
  "integration/schedule",
  "integration/distance",
  "integration/deadline",
  "integration/consumers-deleted",
  "integration/hostile/memory",
  "integration/workers",
  "integration/at-rest",
  "integration/pacing",
  "integration/strikes",
  "integration/outage",
  "integration/workers-frozen",
  "integration/metrics",
  "integration/quorum-lost",
  "integration/guards",
  "integration/room"
].map((name) => `test/${name}.test.ts`)

const placeOf = ({ moduleId }: TestSpecification) => {
  const place = longest.findIndex((file) => moduleId.endsWith(`/${file}`))
  return place === -1 ? longest.length : place
}

/** Begins with the longest files; the others follow in the order of vitest. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => placeOf(a) - placeOf(b))
  }
}
