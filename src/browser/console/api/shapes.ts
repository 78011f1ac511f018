// The answers of the API, as far as the console reads it: test/conformance/README.md, section 4.

export type State = "scheduled" | "running" | "paused" | "finished" | "cancelled" | "rejected"

/** Of a push that has an end, and `retrying`. The order of bars and tables. */
export const outcomes = ["delivered", "retrying", "expired", "dead", "gone", "cancelled"] as const
export type Outcome = (typeof outcomes)[number]
export type Outcomes = Readonly<Record<Outcome, number>>

export interface Action {
  readonly action: string
  readonly title: string
  readonly navigate: string
  readonly icon?: string
}

export interface Notification {
  readonly title: string
  readonly navigate: string
  readonly body?: string
  readonly image?: string
  readonly icon?: string
  readonly tag?: string
  readonly actions?: ReadonlyArray<Action>
  readonly [member: string]: unknown
}

/** Declarative Web Push; other data has any members. */
export interface Content {
  readonly web_push?: 8030
  readonly notification?: Notification
  readonly [member: string]: unknown
}

/** The payload: `data`, and a variant for each of some languages. */
export interface Contents {
  readonly data?: Content
  readonly data_by_locale?: Readonly<Record<string, Content>>
}

export interface To {
  readonly channels?: ReadonlyArray<string>
  readonly users?: ReadonlyArray<string>
  readonly except_users?: ReadonlyArray<string>
}

export type Urgency = "very-low" | "low" | "normal" | "high"

/** The members of a draft that the service does not set. */
export interface DraftData extends Contents {
  readonly name?: string
  readonly to?: To
  readonly at?: string
  readonly delay_seconds?: number
  readonly rate?: number
  readonly pause_when?: { readonly failed_share: number }
  readonly ttl?: number
  readonly urgency?: Urgency
  readonly topic?: string
  readonly test?: boolean
}

export interface Draft extends DraftData {
  readonly id: string
  readonly author: string
  readonly changed_by?: string
  readonly last_modified: number
}

/** As a list shows a broadcast. Times are ms since the epoch, but `at`. */
export interface Broadcast extends Outcomes {
  readonly id: string
  readonly state: State
  readonly finished: boolean
  readonly title?: string
  readonly body?: string
  readonly image?: string
  /** For the desk; never sent. */
  readonly name?: string
  readonly test?: boolean
  readonly publisher: string
  /** Absent: the caller may only look. */
  readonly to?: {
    readonly channels?: ReadonlyArray<string>
    readonly users?: number
    readonly except_users?: number
  }
  readonly people?: number
  readonly accepted: number
  readonly waiting: number
  readonly done_share?: number
  readonly last_modified: number
  readonly accepted_at: number
  readonly expires_at: number
  readonly at?: string
  readonly started_at?: number
  readonly rate?: number
  readonly changed_by?: string
  /** Seconds; absent: a day. */
  readonly ttl?: number
  /** Absent: normal. */
  readonly urgency?: Urgency
  readonly topic?: string
  readonly because?: { readonly attempted: number; readonly failed: number }
  readonly pause_when?: { readonly failed_share: number }
  readonly rejected?: string
  readonly redrives?: string
}

export interface Retries {
  readonly reason: string
  readonly pushes: number
  readonly until: number
}

/** As it is shown alone. Its publisher gets the users whom it names. */
export interface WholeBroadcast extends Broadcast, Contents, Omit<To, "channels"> {
  readonly reasons?: Readonly<Record<string, number>>
  readonly push_services?: Readonly<Record<string, Outcomes & { readonly p50_millis?: number }>>
  readonly retries?: ReadonlyArray<Retries>
  readonly locales?: Readonly<Record<string, Outcomes>>
  readonly first_delivered_at?: number
  readonly last_delivered_at?: number
  readonly p50_millis?: number
  readonly p99_millis?: number
  readonly without_subscription?: number
}

export interface TimelinePoint {
  readonly at: number
  readonly delivered: number
  readonly expired: number
  readonly dead: number
  readonly gone: number
  readonly cancelled: number
}

export interface Timeline {
  /** How long a point is. */
  readonly minutes: number
  readonly points: ReadonlyArray<TimelinePoint>
}

export interface Channel {
  readonly id: string
  readonly registrations: number
}

/** The answer to a dry run. */
export interface Reach {
  readonly people: number
  readonly browsers: number
  readonly estimated: boolean
  readonly without_subscription?: number
  /** Names of channels that nobody is registered to. */
  readonly unjoined_channels?: ReadonlyArray<string>
}

export interface Published {
  readonly id: string
  readonly url?: string
  readonly warnings: ReadonlyArray<string>
}

export interface Root {
  readonly project_version: string
  readonly user?: {
    readonly id: string
    readonly principals: ReadonlyArray<string>
    readonly operator?: boolean
    /** Has the right to name users. */
    readonly users?: boolean
  }
}

export type LoginKind = "openid" | "portier" | "proxy" | "basicauth" | "signed"

/** `GET /v1/console/config.json` */
export interface Config {
  readonly development: boolean
  /** Of the console. A proxy that writes another Host may bring the page elsewhere. */
  readonly origin: string
  readonly logins: ReadonlyArray<{
    readonly policy: string
    readonly kind: LoginKind
    readonly url?: string
  }>
  readonly version: string
  readonly languages?: ReadonlyArray<string>
}
