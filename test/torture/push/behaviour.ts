// How an origin treats the next pushes. A fault sets it and sets it back.

export type Behaviour =
  | { readonly kind: "well" }
  /** Accepts after a while. */
  | { readonly kind: "slow"; readonly millis: number }
  /** Takes the push and never responds. */
  | { readonly kind: "silent" }
  /** 429 with Retry-After. */
  | { readonly kind: "throttling"; readonly seconds: number }
  /** 410 to everybody. */
  | { readonly kind: "gone" }
  | { readonly kind: "failing"; readonly status: number }
  /** Takes the push, sends half of a response and closes the connection. */
  | { readonly kind: "cutting" }
  /** HTTP/2: GOAWAY after a few streams; later streams of the connection are ignored. */
  | { readonly kind: "leaving"; readonly streams: number }
  /** Closes every connection as soon as it is made. */
  | { readonly kind: "down" }

export const well: Behaviour = { kind: "well" }

/** What became of one request at the push service. */
export type Receipt =
  /** 2xx, and the whole response was handed to the network. */
  | "accepted"
  /** The push service took the push, but its response did not leave whole. */
  | "unanswered"
  /** As that, but the status 2xx had left: the sender may believe it or not. */
  | "halved"
  /** 404 or 410. */
  | "gone"
  /** Any other response: the push service did not take the push. */
  | "refused"
