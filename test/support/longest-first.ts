// The order in which test files begin. A file that waits for minutes and begins last keeps the
// other workers idle, and vitest knows how long a file takes only where it ran before.
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Files that take longer than 20 s, whatever else runs, the longest first. */
export const longest = [
  "integration/standstill",
  "integration/forgotten-registrations",
  "integration/events",
  "integration/pause-when",
  "integration/pause",
  "integration/rate-shards",
  "integration/rate",
  "conformance/policies",
  "integration/http2-silent",
  "integration/quorum-lost",
  "integration/forgotten-channels",
  "integration/schedule-crash",
  "integration/crash",
  "integration/pause-killed",
  "integration/faults",
  "integration/full-disk",
  "integration/room",
  "integration/purged",
  "integration/pause-keys",
  "integration/workers-killed",
  "e2e/client/lost",
  "integration/cancel",
  "integration/consumers-deleted",
  "integration/deadline",
  "conformance/two-gateways",
  "e2e/client/chromium",
  "integration/at-rest",
  "conformance/contract",
  "integration/outcomes",
  "integration/room-buckets",
  "integration/stage-away",
  "integration/workers-frozen",
  "integration/distance",
  "integration/workers",
  "e2e/own-login/backends",
  "e2e/worker/firefox",
  "integration/schedule",
  "integration/pacing",
  "integration/nats-silent",
  "integration/start-again"
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
