// The order in which test files begin. A file that waits for minutes and begins last keeps the
// other workers idle, and vitest knows how long a file takes only where it ran before.
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Files that take longer than 15 s, the longest first. */
export const longest = [
  "integration/delivery-processes",
  "integration/heartbeat-progress",
  "integration/standstill",
  "integration/earlier-form",
  "integration/earlier-form-disks",
  "integration/two-versions",
  "integration/handler-dies",
  "integration/roles-announced",
  "integration/events",
  "integration/cancel",
  "integration/ended-broadcasts",
  "integration/verify",
  "integration/rebuild-many",
  "integration/verify-running",
  "integration/nats-limits",
  "integration/forgotten-registrations",
  "integration/rate",
  "integration/pause-when",
  "integration/rate-shards",
  "integration/forgotten-channels",
  "integration/pause",
  "integration/drafts",
  "integration/forgotten-at-rest",
  "integration/direct",
  "integration/http2-silent",
  "integration/schedule-crash",
  "integration/slow-nats",
  "integration/crash",
  "integration/kept-stores",
  "integration/metrics",
  "integration/restored-copies",
  "integration/follower-dies",
  "integration/pause-killed",
  "integration/faults",
  "integration/workers-killed",
  "integration/purged",
  "e2e/client/lost",
  "integration/full-disk",
  "integration/room",
  "integration/pause-keys",
  "integration/consumers-deleted",
  "integration/deadline",
  "integration/made-up-hosts",
  "e2e/client/chromium",
  "integration/outcomes",
  "integration/pause-connecting",
  "conformance/contract",
  "integration/stored-bytes",
  "integration/distance",
  "integration/workers-frozen",
  "e2e/own-login/backends",
  "integration/schedule",
  "integration/fair",
  "integration/pacing",
  "integration/nats-silent",
  "integration/start-again",
  "integration/stage-away",
  "integration/vapid-keys",
  "integration/moves-crash",
  "e2e/worker/firefox",
  "integration/shutdown",
  "integration/workers",
  "integration/room-buckets",
  "conformance/trouble",
  "integration/schedule-many",
  "integration/quorum-lost",
  "integration/unread",
  "integration/crash-embedded",
  "conformance/policies",
  "integration/outage",
  "conformance/fuzz",
  "integration/rebuild-verb",
  "integration/strikes",
  "integration/members",
  "identity/integration/many-at-once"
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
