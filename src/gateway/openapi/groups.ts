// The operations of the API in the order in which one meets them: what each client does first, what
// few do later. The order of the page, and the tags of the description. Pure.

interface Group {
  readonly name: string
  readonly description: string
  /** Ids of operations. */
  readonly operations: ReadonlyArray<string>
}

export const groups: ReadonlyArray<Group> = [
  {
    name: "Subscribe",
    description:
      "A page asks its browser for a subscription with the key of this server, and stores it for " +
      "the user who is logged in. client.js does this.",
    operations: [
      "get-vapid-public-key",
      "post-subscription-list",
      "get-subscription-list",
      "get-subscription",
      "put-subscription",
      "delete-subscription",
      "delete-subscription-list",
      "post-subscription-replace",
      "post-test",
      "delete-root"
    ]
  },
  {
    name: "Join channels",
    description: "A user gets the broadcasts of the channels to which they are registered.",
    operations: ["put-registration", "delete-registration", "get-registrations", "get-channel"]
  },
  {
    name: "Publish",
    description:
      "A publisher sends to the users of one channel, or to several channels and named users.",
    operations: ["get-channels", "post-channel", "post-broadcasts"]
  },
  {
    name: "Drafts",
    description: "What will be a broadcast: written, reviewed by others, and published as it was.",
    operations: ["put-draft", "get-draft", "get-drafts", "post-draft-publish", "delete-draft"]
  },
  {
    name: "See what became of it",
    description: "The state and the counts of a broadcast, at once, as events, or push by push.",
    operations: [
      "get-any-broadcast",
      "get-events",
      "patch-any-broadcast",
      "get-broadcasts",
      "get-pushes",
      "get-timeline",
      "get-channel-broadcasts",
      "get-broadcast",
      "get-channel-broadcast-events",
      "patch-broadcast"
    ]
  },
  {
    name: "A site's server",
    description: "What a server does for its users: the channels of each, and logout.",
    operations: [
      "get-members",
      "put-member",
      "delete-member",
      "delete-user-subscription-list",
      "delete-user",
      "post-batch"
    ]
  },
  {
    name: "Operators",
    description: "For those whom BELLCAST_OPERATOR_PRINCIPALS names.",
    operations: ["get-user", "post-restore", "get-dead", "post-redrive"]
  },
  {
    name: "Log in",
    description: "Pages of the policies openid and portier. Other logins are the site's.",
    operations: [
      "get-openid-login",
      "get-openid-token",
      "get-portier-login",
      "post-portier-login",
      "post-portier-verify"
    ]
  },
  {
    name: "The service",
    description: "What this server is, whether it works, and what pages load from it.",
    operations: [
      "get-root",
      "get-client-js",
      "get-worker-js",
      "get-words-js",
      "get-api",
      "get-heartbeat",
      "get-lbheartbeat",
      "get-metrics",
      "get-version",
      "get-contribute"
    ]
  }
]
