// Which scopes cover which, by the rules of contract section 7.4. Pure.

const partsOf = (scope: string) => {
  const parts = scope.split(":")
  const writes = parts.length > 1 && parts.at(-1) === "write"
  return { parts: writes ? parts.slice(0, -1) : parts, writes }
}

/** Whether a short name covers another: `a` covers `a:b`, but only `a:write` covers `a:b:write`. */
const coversName = (provided: string, required: string): boolean => {
  const [has, needs] = [partsOf(provided), partsOf(required)]
  return has.parts.every((part, i) => part === needs.parts[i]) && (!needs.writes || has.writes)
}

/** Whether a URL covers another: a prefix of its path, up to a slash. Fragments must agree. */
const coversUrl = (provided: string, required: string): boolean => {
  const [has, needs] = [URL.parse(provided), URL.parse(required)]
  if (has === null || needs === null) return false
  const path = has.pathname.replace(/\/$/, "")
  return (
    has.origin === needs.origin &&
    has.hash === needs.hash &&
    has.search === needs.search &&
    (needs.pathname === has.pathname || needs.pathname.startsWith(`${path}/`))
  )
}

const isUrl = (scope: string): boolean => scope.startsWith("https:")

const covers = (provided: string, required: string): boolean =>
  isUrl(provided) || isUrl(required)
    ? isUrl(provided) && isUrl(required) && coversUrl(provided, required)
    : coversName(provided, required)

/** Whether every required scope is covered by a provided one. */
export const coversAll = (
  provided: ReadonlyArray<string>,
  required: ReadonlyArray<string>
): boolean => required.every((scope) => provided.some((each) => covers(each, scope)))
