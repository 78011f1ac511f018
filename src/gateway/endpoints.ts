// All endpoints. A path that is not in this table is a 404, a method that its endpoint does not
// allow a 405.
import { batchPost } from "./batch/batch.ts"
import { broadcastGet } from "./channels/broadcast.ts"
import { broadcastPost } from "./channels/broadcast-post.ts"
import { channelGet } from "./channels/channel.ts"
import { registrationDelete, registrationPut } from "./channels/registration.ts"
import { openidLoginGet, openidTokenGet } from "./logins/openid.ts"
import { portierLoginGet, portierLoginPost, portierVerifyPost } from "./logins/portier.ts"
import { apiGet } from "./openapi/api.ts"
import type { Endpoint } from "./operation.ts"
import { contributeGet } from "./service/contribute.ts"
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
import { listDelete, listGet } from "./subscriptions/subscription-list.ts"
import { subscriptionPost } from "./subscriptions/subscription-post.ts"

const readOnly = ["GET", "HEAD", "OPTIONS"]

export const endpoints: ReadonlyArray<Endpoint> = [
  { name: "root", path: "/", allow: readOnly, operations: { GET: rootGet } },
  {
    name: "subscription-list",
    path: "/subscriptions",
    allow: ["HEAD", "GET", "POST", "DELETE", "OPTIONS"],
    operations: { GET: listGet, POST: subscriptionPost, DELETE: listDelete }
  },
  {
    name: "subscription",
    path: "/subscriptions/:id",
    allow: ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"],
    operations: { GET: subscriptionGet, PUT: subscriptionPut, DELETE: subscriptionDelete }
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
  {
    name: "broadcast",
    path: "/channels/:channel/broadcasts/:broadcast",
    allow: readOnly,
    operations: { GET: broadcastGet }
  },
  {
    name: "vapid-public-key",
    path: "/vapid-public-key",
    allow: readOnly,
    operations: { GET: vapidPublicKeyGet }
  },
  { name: "heartbeat", path: "/__heartbeat__", allow: readOnly, operations: { GET: heartbeatGet } },
  {
    name: "lbheartbeat",
    path: "/__lbheartbeat__",
    allow: readOnly,
    operations: { GET: lbheartbeatGet }
  },
  { name: "version", path: "/__version__", allow: readOnly, operations: { GET: versionGet } },
  { name: "metrics", path: "/__metrics__", allow: readOnly, operations: { GET: metricsGet } },
  {
    name: "contribute",
    path: "/contribute.json",
    allow: readOnly,
    operations: { GET: contributeGet }
  },
  { name: "api", path: "/__api__", allow: readOnly, operations: { GET: apiGet } },
  {
    name: "openid-login",
    path: "/openid/:policy/login",
    allow: readOnly,
    operations: { GET: openidLoginGet }
  },
  {
    name: "openid-token",
    path: "/openid/:policy/token",
    allow: readOnly,
    operations: { GET: openidTokenGet }
  },
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
