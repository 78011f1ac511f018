// The days of the rig's programs, which are short: a run of minutes then has old messages. NATS
// gives messages their time, so that the rig cannot store old ones.

/** A day of the history. Days of broadcasts, as of their lives and in WORK, stay whole. */
export const dayMillis = 2_000

/** BELLCAST_HISTORY_DAYS. */
export const historyDays = 100
export const historyMillis = historyDays * dayMillis

/** The shortest history that the service keeps, of 95 days: LOG has every younger message. */
export const historyMillisMin = 95 * dayMillis

/** Between two looks of the trimmer. */
export const lookMillis = 15_000

/** How long the bucket keeps an ended registration: less than the history, more than a freeze. */
export const endedMillis = 100_000

/** How long a browser whose subscription ended may renew it: less than the history, too. */
export const renewableMillis = 150_000
