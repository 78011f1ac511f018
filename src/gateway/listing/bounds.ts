// Limits on the query string of a list. Without them a GET of 15 KB could block the event loop for
// minutes. The clients of Kinto stay far below each limit.

/** Parameters in a query string. A subscription has about ten fields that are worth a filter. */
export const parametersMax = 32

/** Characters in the name of a parameter or field. The longest name in Bellcast has 19. */
export const nameCharsMax = 128

/** Parts of a dotted name. `keys.auth` has two. Each part may read the nested object again. */
const namePartsMax = 5

/** Different fields in `_fields`. Each is read in every object. */
export const fieldsMax = 64

/** Different fields in `_sort`. Each is read, and may be serialised, in every object. */
export const sortKeysMax = 8

/** Values in `in_` and `exclude_`. A user has at most 50 subscriptions and 1,000 tombstones. */
export const valuesMax = 1_100

/**
 * Characters in the pattern of `like_`. Searching a text costs at most its length times that of the
 * pattern: 16 KiB (the largest stored text) times 256 take less than 5 ms.
 */
export const patternCharsMax = 256

/**
 * Characters in the URL of Next-Page. nginx and HAProxy allow a request line of 8 KiB, this server
 * a head of 16 KiB. The rest of the 8 KiB is for the method and the HTTP version.
 */
export const nextPageCharsMax = 8_000

/** The error of a field's name; undefined for a valid name. */
export const nameError = (name: string): string | undefined => {
  if (name.length > nameCharsMax)
    return `A field's name must not have more than ${nameCharsMax} characters`
  return name.split(".").length > namePartsMax
    ? `A field's name must not have more than ${namePartsMax} parts`
    : undefined
}
