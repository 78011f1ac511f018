// All cases, by the sections of the contract (README.md).

import { basicUsers } from "./sections/basic.ts"
import { batches } from "./sections/batch.ts"
import { batchEntries } from "./sections/batch-entries.ts"
import { batchLimits } from "./sections/batch-limits.ts"
import { broadcastLists } from "./sections/broadcast-lists.ts"
import { broadcastProgress } from "./sections/broadcast-progress.ts"
import { broadcastStates } from "./sections/broadcast-states.ts"
import { broadcasts } from "./sections/broadcasts.ts"
import { callers } from "./sections/callers.ts"
import { channelList } from "./sections/channel-list.ts"
import { channels } from "./sections/channels.ts"
import { content } from "./sections/content.ts"
import { cors } from "./sections/cors.ts"
import { crossSite } from "./sections/cross-site.ts"
import { description } from "./sections/description.ts"
import { direct } from "./sections/direct.ts"
import { directProgress } from "./sections/direct-progress.ts"
import { draftPublications } from "./sections/draft-publications.ts"
import { drafts } from "./sections/drafts.ts"
import { errors } from "./sections/errors.ts"
import { events } from "./sections/events.ts"
import { files } from "./sections/files.ts"
import { filtering } from "./sections/filtering.ts"
import { forgottenUsers } from "./sections/forgotten-users.ts"
import { listing } from "./sections/listing.ts"
import { mediaTypes } from "./sections/media-types.ts"
import { members } from "./sections/members.ts"
import { operational } from "./sections/operational.ts"
import { operators } from "./sections/operators.ts"
import { pages } from "./sections/pages.ts"
import { pauseWhen } from "./sections/pause-when.ts"
import { persons } from "./sections/persons.ts"
import { preconditions } from "./sections/preconditions.ts"
import { pushData } from "./sections/push-data.ts"
import { pushes } from "./sections/pushes.ts"
import { rates } from "./sections/rates.ts"
import { redrives } from "./sections/redrives.ts"
import { registrations } from "./sections/registrations.ts"
import { renewal } from "./sections/renewal.ts"
import { scheduleChanges } from "./sections/schedule-changes.ts"
import { schedules } from "./sections/schedules.ts"
import { subscriptionBodies } from "./sections/subscription-bodies.ts"
import { subscriptionChanges } from "./sections/subscription-changes.ts"
import { subscriptionMembers } from "./sections/subscription-members.ts"
import { subscriptionTests } from "./sections/subscription-tests.ts"
import { subscriptions } from "./sections/subscriptions.ts"
import { urls } from "./sections/urls.ts"
import { users } from "./sections/users.ts"
import type { Case } from "./table.ts"

export const sections: ReadonlyArray<readonly [name: string, cases: ReadonlyArray<Case>]> = [
  ["1 URLs", urls],
  ["1.8 origins", cors],
  ["1.8 other sites", crossSite],
  ["2 errors", [...errors, ...mediaTypes]],
  ["3.1-3.2 what a subscription is", [...subscriptionBodies, ...subscriptionMembers]],
  ["3.3-3.5 subscriptions", [...subscriptions, ...subscriptionChanges]],
  ["3.6 preconditions", preconditions],
  ["3.9 filters", filtering],
  ["3.7-3.10 lists", [...listing, ...pages]],
  ["3.11 tests of subscriptions", subscriptionTests],
  ["3.12 renewal", renewal],
  ["4.1-4.3 channels", [...channels, ...channelList, ...registrations]],
  ["4.5 members", members],
  ["4.4 broadcasts", [...broadcasts, ...pushData, ...rates, ...broadcastProgress]],
  ["4.6 broadcasts to channels and users", [...direct, ...directProgress]],
  ["4.7 forgotten users", forgottenUsers],
  ["4.8 states of broadcasts", [...broadcastStates, ...pauseWhen]],
  ["4.9 lists of broadcasts", broadcastLists],
  ["4.10 pushes of a broadcast", pushes],
  ["4.11 redrives", redrives],
  ["4.12 persons", persons],
  ["4.13 streams of events", events],
  ["4.14 broadcasts that start later", [...schedules, ...scheduleChanges]],
  ["4.15 drafts", [...drafts, ...draftPublications]],
  ["4.16 what a broadcast says", content],
  ["5.1-5.4 the server", operational],
  ["5.5 the description", description],
  ["5.6 batches", [...batches, ...batchEntries, ...batchLimits]],
  ["5.7 files", files],
  ["7 callers", [...callers, ...basicUsers, ...users, ...operators]]
]
