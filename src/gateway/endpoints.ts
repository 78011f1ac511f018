// Every endpoint there is: what is not in this table is a 404, what an endpoint does not list is a 405.
import type { Endpoint } from "./operation.ts"
import { apiGet } from "./resources/api.ts"
import { batchPost } from "./resources/batch.ts"
import { broadcastGet } from "./resources/broadcast.ts"
import { broadcastPost } from "./resources/broadcast-post.ts"
import { channelGet } from "./resources/channel.ts"
import { contributeGet } from "./resources/contribute.ts"
import { heartbeatGet, lbheartbeatGet } from "./resources/heartbeat.ts"
import { metricsGet } from "./resources/metrics.ts"
import { registrationDelete, registrationPut } from "./resources/registration.ts"
import { rootGet } from "./resources/root.ts"
import { subscriptionDelete, subscriptionGet, subscriptionPut } from "./resources/subscription.ts"
import { listDelete, listGet } from "./resources/subscription-list.ts"
import { subscriptionPost } from "./resources/subscription-post.ts"
import { vapidPublicKeyGet } from "./resources/vapid-public-key.ts"
import { versionGet } from "./resources/version.ts"

const readable = ["GET", "HEAD", "OPTIONS"]

export const endpoints: ReadonlyArray<Endpoint> = [
  { name: "root", path: "/", allow: readable, operations: { GET: rootGet } },
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
    allow: readable,
    operations: { GET: broadcastGet }
  },
  {
    name: "vapid-public-key",
    path: "/vapid-public-key",
    allow: readable,
    operations: { GET: vapidPublicKeyGet }
  },
  { name: "heartbeat", path: "/__heartbeat__", allow: readable, operations: { GET: heartbeatGet } },
  {
    name: "lbheartbeat",
    path: "/__lbheartbeat__",
    allow: readable,
    operations: { GET: lbheartbeatGet }
  },
  { name: "version", path: "/__version__", allow: readable, operations: { GET: versionGet } },
  { name: "metrics", path: "/__metrics__", allow: readable, operations: { GET: metricsGet } },
  {
    name: "contribute",
    path: "/contribute.json",
    allow: readable,
    operations: { GET: contributeGet }
  },
  { name: "api", path: "/__api__", allow: readable, operations: { GET: apiGet } },
  { name: "batch", path: "/batch", allow: ["POST", "OPTIONS"], operations: { POST: batchPost } }
]
