// A list with every type of value, and a short notation of lists: the last letters of the
// endpoints.
import type { Api, StoredObject } from "./api.ts"
import type { HttpResponse } from "./http.ts"

/** Five subscriptions with every type of value; `e` is the newest. */
export const zoo = async (api: Api): Promise<ReadonlyArray<StoredObject>> => [
  await api.stored("a", {
    name: "Ape",
    n: 1,
    flag: true,
    tags: ["x", "y"],
    deep: { at: "one" },
    nothing: null
  }),
  await api.stored("b", { name: "bear", n: 10, flag: false, tags: ["y"], deep: { at: "two" } }),
  await api.stored("c", { name: "Cat*", n: 2.5, tags: [], mixed: "text" }),
  await api.stored("d", { name: "dog [1]", n: -3, mixed: 7 }),
  await api.stored("e", { mixed: null })
]

export const letters = ({ json, text }: Pick<HttpResponse, "json" | "text">): string => {
  if (!Array.isArray(json?.data)) throw new Error(text)
  return json.data
    .map(({ deleted, endpoint }: StoredObject) => (deleted ? "-" : endpoint.at(-1)))
    .join("")
}
