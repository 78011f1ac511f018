// Sends the requests that no-right.ts draws, as they are: one by one, and all in a batch.
import { type Agent, request } from "node:http"
import type { Sent, Story } from "./no-right.ts"

export const broadcast = { data: { title: "Hello" } }

/** A body with an audience where requests name one; to a channel it would be refused for that. */
const bodyOf = ({ path, to }: Pick<Sent, "path" | "to">) =>
  /roadcasts\/?(\?|$)/.test(path) ? { ...broadcast, to } : broadcast

const headersOf = ({
  authorization,
  front,
  headers
}: Pick<Sent, "authorization" | "front" | "headers">): Record<string, string> => ({
  ...headers,
  ...front,
  ...(authorization === undefined ? {} : { authorization })
})

const batchMethods = ["GET", "HEAD", "DELETE", "TRACE", "POST", "PUT", "PATCH"]

/** The story as the body of a batch. */
const batchOf = ({ form, outer, sent }: Story) => {
  const entries = sent.map((each) => ({
    method: batchMethods.includes(each.method) ? each.method : "POST",
    path: each.path.startsWith("/") ? each.path : "/v1/channels/news",
    headers: Object.fromEntries(
      Object.entries(headersOf({ ...each, front: {} })).map(([name, value]) => [
        form === "upper case" ? name.toUpperCase() : name,
        value
      ])
    ),
    body: bodyOf(each)
  }))
  if (form === "defaults") {
    const [{ path, ...defaults }, ...others] = entries as [(typeof entries)[0], ...typeof entries]
    const bodies = others.map(({ body, path }) => ({ body, path }))
    return { defaults, requests: [{ path }, ...bodies] }
  }
  if (form !== "nested") return { requests: entries }
  const { authorization } = outer
  const headers = authorization === undefined ? {} : { authorization }
  return { requests: [{ method: "POST", path: "/batch", headers, body: { requests: entries } }] }
}

/** Sends a request as it is, however odd its path. Resolves with the status. */
const raw = (port: number, agent: Agent, { path, ...sent }: Sent, body: object): Promise<number> =>
  new Promise((resolve, reject) => {
    const { method } = sent
    const text = ["GET", "HEAD"].includes(method) ? "" : JSON.stringify(body)
    // Node sends a body of DELETE, OPTIONS and TRACE without a length of its own.
    const length = text === "" ? {} : { "content-length": String(Buffer.byteLength(text)) }
    const headers = { ...headersOf(sent), "content-type": "application/json", ...length }
    const asked = request({ agent, port, method, path, headers, timeout: 15_000 }, (response) => {
      response.on("error", reject).on("end", () => resolve(response.statusCode ?? 0))
      response.resume()
    })
    asked.on("error", reject).on("timeout", () => asked.destroy(new Error("no response")))
    asked.end(text)
  })

/** Sends the requests of a story, and all of them once more in a batch. Returns the statuses. */
export const tell = async (port: number, agent: Agent, story: Story) => {
  const statuses: Array<number> = []
  for (const each of story.sent) statuses.push(await raw(port, agent, each, bodyOf(each)))
  const batch = { ...story.outer, method: "POST", path: "/v1/batch", headers: {}, to: {} }
  statuses.push(await raw(port, agent, batch, batchOf(story)))
  return statuses
}
