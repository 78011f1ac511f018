// The trimmer deletes what is older than the history, and an erasure what is of its user. Every
// other message that the rig has read is in LOG.
import { dayMillis, historyMillisMin } from "../fleet/days.ts"
import { isLetterToErased } from "../load/redrives.ts"
import { type Check, few, type Look } from "./check.ts"

/** Some messages are old and unneeded by then, and the trimmer has looked at them. */
const trimmedMillis = historyMillisMin + 100_000
/** The rig must read LOG before a message of it may go. */
const gapMillisMax = historyMillisMin - 5 * dayMillis

/** Sequences of messages that the rig has read and LOG lacks. */
export const missingIn = async ({
  client,
  recorded
}: Pick<Look, "client" | "recorded">): Promise<ReadonlyArray<number>> => {
  const options = { deleted_details: true }
  const { state } = await client.jsm.streams.info("BELLCAST_LOG", options)
  const deleted = new Set(state.deleted)
  return [...recorded.noted.keys()].filter((seq) => seq < state.first_seq || deleted.has(seq))
}

/** Whether an erasure deletes this message: one of its user, or of a broadcast to nobody else. */
const makeIsErased = ({ model, recorded }: Look) => {
  const { broadcasts, noted } = recorded
  const users = new Set(model.users.flatMap((user) => (user.erased ? user.pseudonym : [])))
  const letters = new Set<number>()
  for (const { id, marker = "", parts } of broadcasts.values()) {
    const letter = model.broadcasts.get(marker)
    if (letter !== undefined && isLetterToErased(letter))
      for (const seq of [id, ...parts]) letters.add(seq)
  }
  const isErased = (seq: number): boolean => {
    const subject = noted.get(seq)?.subject ?? ""
    const [kind, last] = [subject.split(".").slice(0, 3).join("."), subject.split(".").at(-1)!]
    if (kind === "bellcast.evt.rejected" || kind === "bellcast.evt.taken")
      return isErased(Number(last))
    if (kind === "bellcast.evt.state") return letters.has(Number(last))
    // One message for each channel takes the place of the former one.
    if (kind === "bellcast.cmd.begun" || kind === "bellcast.evt.summed") return true
    return users.has(last) || letters.has(seq)
  }
  return isErased
}

/** Counts the old ones as trimmed. Returns those that are too young for it. */
const tooYoung = (look: Look, missing: ReadonlyArray<number>) => {
  const { figures, recorded } = look
  const isErased = makeIsErased(look)
  const before = Date.now() - historyMillisMin
  return missing.flatMap((seq) => {
    const message = recorded.noted.get(seq)!
    if (isErased(seq)) return []
    if (message.at >= before) return [{ seq, ...message }]
    if (!recorded.trimmed.has(seq)) figures.trimmed++
    recorded.trimmed.add(seq)
    return []
  })
}

export const history: Check = {
  name: "LOG loses what is old, and nothing else",
  run: async (look) => {
    const { recorded } = look
    await recorded.update()
    const young = tooYoung(look, await missingIn(look))
    const violations = young.map(
      ({ at, seq, subject }) => `message ${seq} of ${new Date(at).toISOString()}, ${subject}`
    )
    const [first] = recorded.noted.values()
    const isDue = first !== undefined && Date.now() - first.at > trimmedMillis
    if (isDue && recorded.trimmed.size === 0) violations.push("nothing was trimmed yet")
    const gapMillis = recorded.gapMillisMax()
    if (gapMillis > gapMillisMax)
      violations.push(`the rig did not read LOG for ${Math.round(gapMillis / 1_000)} s`)
    return few(violations)
  }
}
