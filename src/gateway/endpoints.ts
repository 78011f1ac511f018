// All endpoints. A path that is not in this table is a 404, a method that its endpoint does not
// allow a 405.
import { batchPost } from "./batch.ts"
import { anyBroadcastGet, broadcastGet, broadcastPatch } from "./broadcasts/broadcast.ts"
import { broadcastsGet, channelBroadcastsGet } from "./broadcasts/broadcast-list.ts"
import { deadGet } from "./broadcasts/dead.ts"
import { channelEventsGet, eventsGet } from "./broadcasts/events.ts"
import { broadcastPost, directPost } from "./broadcasts/publish.ts"
import { pushesGet } from "./broadcasts/pushes.ts"
import { redrivePost } from "./broadcasts/redrive.ts"
import { testPost } from "./broadcasts/test-post.ts"
import { timelineGet } from "./broadcasts/timeline.ts"
import { channelGet, memberDelete, memberPut, membersGet } from "./channels/channel.ts"
import { channelsGet } from "./channels/channel-list.ts"
import { registrationDelete, registrationPut, registrationsGet } from "./channels/registration.ts"
import { consoleEndpoints } from "./console.ts"
import { demoEndpoints } from "./demo.ts"
import { draftDelete, draftGet, draftPut } from "./drafts/draft.ts"
import { draftsGet } from "./drafts/draft-list.ts"
import { draftPublishPost } from "./drafts/draft-publish.ts"
import {
  openidLoginGet,
  openidTokenGet,
  portierLoginGet,
  portierLoginPost,
  portierVerifyPost
} from "./logins/logins.ts"
import { apiGet } from "./openapi/api.ts"
import { type Endpoint, endpoint, type NeedsOf } from "./operation.ts"
import { contributeGet, rootGet, versionGet } from "./service/about.ts"
import { fileEndpoints } from "./service/files.ts"
import { heartbeatGet, lbheartbeatGet, metricsGet } from "./service/probes.ts"
import {
  subscriptionDelete,
  subscriptionGet,
  subscriptionPut
} from "./subscriptions/subscription.ts"
import { listDelete, listGet, userListDelete } from "./subscriptions/subscription-list.ts"
import { subscriptionPost } from "./subscriptions/subscription-post.ts"
import { subscriptionReplace } from "./subscriptions/subscription-replace.ts"
import { namedUserDelete, userDelete } from "./users/erase.ts"
import { restorePost } from "./users/restore.ts"
import { userGet } from "./users/user.ts"
import { vapidPublicKeyGet } from "./vapid-public-keys.ts"

const api = [
  endpoint("root", "/", { GET: rootGet, DELETE: userDelete }),
  {
    ...endpoint("subscription-list", "/subscriptions", {
      GET: listGet,
      POST: subscriptionPost,
      DELETE: listDelete
    }),
    // The order of the contract.
    allow: ["HEAD", "GET", "POST", "DELETE", "OPTIONS"]
  },
  endpoint("subscription-replace", "/subscriptions/replace", { POST: subscriptionReplace }),
  endpoint("subscription", "/subscriptions/:id", {
    GET: subscriptionGet,
    PUT: subscriptionPut,
    DELETE: subscriptionDelete
  }),
  endpoint("user-subscription-list", "/users/:user/subscriptions", { DELETE: userListDelete }),
  endpoint("restore", "/users/:user/subscriptions/:id/restore", { POST: restorePost }),
  endpoint("user", "/users/:user", { GET: userGet, DELETE: namedUserDelete }),
  endpoint("test", "/subscriptions/:id/test", { POST: testPost }),
  endpoint("channels", "/channels", { GET: channelsGet }),
  endpoint("channel", "/channels/:channel", { POST: broadcastPost, GET: channelGet }),
  endpoint("registration", "/channels/:channel/registration", {
    PUT: registrationPut,
    DELETE: registrationDelete
  }),
  endpoint("registrations", "/registrations", { GET: registrationsGet }),
  endpoint("members", "/channels/:channel/members", { GET: membersGet }),
  endpoint("member", "/channels/:channel/members/:user", { PUT: memberPut, DELETE: memberDelete }),
  endpoint("channel-broadcasts", "/channels/:channel/broadcasts", { GET: channelBroadcastsGet }),
  endpoint("broadcast", "/channels/:channel/broadcasts/:broadcast", {
    GET: broadcastGet,
    PATCH: broadcastPatch
  }),
  endpoint("broadcasts", "/broadcasts", { GET: broadcastsGet, POST: directPost }),
  endpoint("any-broadcast", "/broadcasts/:broadcast", {
    GET: anyBroadcastGet,
    PATCH: broadcastPatch
  }),
  endpoint("redrive", "/broadcasts/:broadcast/redrive", { POST: redrivePost }),
  endpoint("drafts", "/drafts", { GET: draftsGet }),
  endpoint("draft", "/drafts/:draft", { GET: draftGet, PUT: draftPut, DELETE: draftDelete }),
  endpoint("draft-publish", "/drafts/:draft/publish", { POST: draftPublishPost }),
  endpoint("dead", "/dead", { GET: deadGet }),
  endpoint("events", "/broadcasts/:broadcast/events", { GET: eventsGet }),
  endpoint("channel-broadcast-events", "/channels/:channel/broadcasts/:broadcast/events", {
    GET: channelEventsGet
  }),
  endpoint("pushes", "/broadcasts/:broadcast/pushes", { GET: pushesGet }),
  endpoint("timeline", "/broadcasts/:broadcast/timeline", { GET: timelineGet }),
  endpoint("vapid-public-key", "/vapid-public-key", { GET: vapidPublicKeyGet }),
  ...fileEndpoints,
  endpoint("heartbeat", "/__heartbeat__", { GET: heartbeatGet }),
  endpoint("lbheartbeat", "/__lbheartbeat__", { GET: lbheartbeatGet }),
  endpoint("version", "/__version__", { GET: versionGet }),
  endpoint("metrics", "/__metrics__", { GET: metricsGet }),
  endpoint("contribute", "/contribute.json", { GET: contributeGet }),
  endpoint("api", "/__api__", { GET: apiGet }),
  endpoint("openid-login", "/openid/:policy/login", { GET: openidLoginGet }),
  endpoint("openid-token", "/openid/:policy/token", { GET: openidTokenGet }),
  endpoint("portier-login", "/portier/login", { GET: portierLoginGet, POST: portierLoginPost }),
  endpoint("portier-verify", "/portier/verify", { POST: portierVerifyPost }),
  endpoint("batch", "/batch", { POST: batchPost })
]

const everything = [...api, ...consoleEndpoints(true), ...demoEndpoints]

/** The services that any of the endpoints needs. */
type Needs = NeedsOf<(typeof everything)[number]>

export const endpoints: ReadonlyArray<Endpoint<Needs>> = api

const withConsole = [...api, ...consoleEndpoints(false)]
const withDemo = [...api, ...demoEndpoints]

/** All endpoints and, where they are served, the console and the demo: no parts of the API. */
export const endpointsIn = (
  isDevelopment: boolean,
  hasConsole: boolean
): ReadonlyArray<Endpoint<Needs>> => {
  if (isDevelopment) return hasConsole ? everything : withDemo
  return hasConsole ? withConsole : api
}
