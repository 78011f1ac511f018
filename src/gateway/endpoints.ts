// All endpoints. A path that is not in this table is a 404, a method that its endpoint does not
// allow a 405.
import { batchPost } from "./batch/batch.ts"
import { anyBroadcastGet, broadcastGet } from "./broadcasts/broadcast.ts"
import { broadcastsGet, channelBroadcastsGet } from "./broadcasts/broadcast-list.ts"
import { broadcastPatch } from "./broadcasts/broadcast-patch.ts"
import { broadcastPost } from "./broadcasts/channel-post.ts"
import { deadGet } from "./broadcasts/dead.ts"
import { directPost } from "./broadcasts/direct-post.ts"
import { pushesGet } from "./broadcasts/pushes.ts"
import { redrivePost } from "./broadcasts/redrive.ts"
import { testPost } from "./broadcasts/test-post.ts"
import { channelGet } from "./channels/channel.ts"
import { memberDelete, memberPut, membersGet } from "./channels/members.ts"
import { registrationDelete, registrationPut } from "./channels/registration.ts"
import { registrationsGet } from "./channels/registrations.ts"
import { userDelete } from "./channels/user.ts"
import { demoEndpoints } from "./demo/endpoints.ts"
import { openidLoginGet, openidTokenGet } from "./logins/openid.ts"
import { portierLoginGet, portierLoginPost, portierVerifyPost } from "./logins/portier.ts"
import { apiGet } from "./openapi/api.ts"
import type { AnyOperation, Endpoint } from "./operation.ts"
import { contributeGet } from "./service/contribute.ts"
import { fileEndpoints } from "./service/files.ts"
import { heartbeatGet, lbheartbeatGet } from "./service/heartbeat.ts"
import { metricsGet } from "./service/metrics.ts"
import { rootGet } from "./service/root.ts"
import { vapidPublicKeyGet } from "./service/vapid-public-key.ts"
import { versionGet } from "./service/version.ts"
import {
  subscriptionDelete,
  subscriptionGet,
  subscriptionPut
} from "./subscriptions/subscription.ts"
import { listDelete, listGet, userListDelete } from "./subscriptions/subscription-list.ts"
import { subscriptionPost } from "./subscriptions/subscription-post.ts"
import { subscriptionReplace } from "./subscriptions/subscription-replace.ts"
import { restorePost } from "./users/restore.ts"
import { userGet } from "./users/user-get.ts"

const readOnly = (name: string, path: string, get: AnyOperation): Endpoint => ({
  name,
  path,
  allow: ["GET", "HEAD", "OPTIONS"],
  operations: { GET: get }
})

export const endpoints: ReadonlyArray<Endpoint> = [
  {
    name: "root",
    path: "/",
    allow: ["GET", "HEAD", "DELETE", "OPTIONS"],
    operations: { GET: rootGet, DELETE: userDelete }
  },
  {
    name: "subscription-list",
    path: "/subscriptions",
    allow: ["HEAD", "GET", "POST", "DELETE", "OPTIONS"],
    operations: { GET: listGet, POST: subscriptionPost, DELETE: listDelete }
  },
  {
    name: "subscription-replace",
    path: "/subscriptions/replace",
    allow: ["POST", "OPTIONS"],
    operations: { POST: subscriptionReplace }
  },
  {
    name: "subscription",
    path: "/subscriptions/:id",
    allow: ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"],
    operations: { GET: subscriptionGet, PUT: subscriptionPut, DELETE: subscriptionDelete }
  },
  {
    name: "user-subscription-list",
    path: "/users/:user/subscriptions",
    allow: ["DELETE", "OPTIONS"],
    operations: { DELETE: userListDelete }
  },
  {
    name: "restore",
    path: "/users/:user/subscriptions/:id/restore",
    allow: ["POST", "OPTIONS"],
    operations: { POST: restorePost }
  },
  readOnly("user", "/users/:user", userGet),
  {
    name: "test",
    path: "/subscriptions/:id/test",
    allow: ["POST", "OPTIONS"],
    operations: { POST: testPost }
  },
  {
    name: "channel",
    path: "/channels/:channel",
    allow: ["POST", "GET", "HEAD", "OPTIONS"],
    operations: { GET: channelGet, POST: broadcastPost }
  },
  {
    name: "registration",
    path: "/channels/:channel/registration",
    allow: ["PUT", "DELETE", "OPTIONS"],
    operations: { PUT: registrationPut, DELETE: registrationDelete }
  },
  readOnly("registrations", "/registrations", registrationsGet),
  readOnly("members", "/channels/:channel/members", membersGet),
  {
    name: "member",
    path: "/channels/:channel/members/:user",
    allow: ["PUT", "DELETE", "OPTIONS"],
    operations: { PUT: memberPut, DELETE: memberDelete }
  },
  readOnly("channel-broadcasts", "/channels/:channel/broadcasts", channelBroadcastsGet),
  {
    name: "broadcast",
    path: "/channels/:channel/broadcasts/:broadcast",
    allow: ["GET", "HEAD", "PATCH", "OPTIONS"],
    operations: { GET: broadcastGet, PATCH: broadcastPatch }
  },
  {
    name: "broadcasts",
    path: "/broadcasts",
    allow: ["GET", "HEAD", "POST", "OPTIONS"],
    operations: { GET: broadcastsGet, POST: directPost }
  },
  {
    name: "any-broadcast",
    path: "/broadcasts/:broadcast",
    allow: ["GET", "HEAD", "PATCH", "OPTIONS"],
    operations: { GET: anyBroadcastGet, PATCH: broadcastPatch }
  },
  {
    name: "redrive",
    path: "/broadcasts/:broadcast/redrive",
    allow: ["POST", "OPTIONS"],
    operations: { POST: redrivePost }
  },
  readOnly("dead", "/dead", deadGet),
  readOnly("pushes", "/broadcasts/:broadcast/pushes", pushesGet),
  readOnly("vapid-public-key", "/vapid-public-key", vapidPublicKeyGet),
  ...fileEndpoints,
  readOnly("heartbeat", "/__heartbeat__", heartbeatGet),
  readOnly("lbheartbeat", "/__lbheartbeat__", lbheartbeatGet),
  readOnly("version", "/__version__", versionGet),
  readOnly("metrics", "/__metrics__", metricsGet),
  readOnly("contribute", "/contribute.json", contributeGet),
  readOnly("api", "/__api__", apiGet),
  readOnly("openid-login", "/openid/:policy/login", openidLoginGet),
  readOnly("openid-token", "/openid/:policy/token", openidTokenGet),
  {
    name: "portier-login",
    path: "/portier/login",
    allow: ["GET", "HEAD", "POST", "OPTIONS"],
    operations: { GET: portierLoginGet, POST: portierLoginPost }
  },
  {
    name: "portier-verify",
    path: "/portier/verify",
    allow: ["POST", "OPTIONS"],
    operations: { POST: portierVerifyPost }
  },
  { name: "batch", path: "/batch", allow: ["POST", "OPTIONS"], operations: { POST: batchPost } }
]

/** All endpoints and, in development, the demo, which is no part of the API. */
export const endpointsIn = (isDevelopment: boolean): ReadonlyArray<Endpoint> =>
  isDevelopment ? withDemo : endpoints

const withDemo = [...endpoints, ...demoEndpoints]
