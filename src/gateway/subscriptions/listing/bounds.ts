// How much one query string may ask of a list. Without these bounds a plain GET of 15 KB could keep
// the event loop for minutes. Kinto's own clients stay far below each of them.

/** Parameters in a query string. A stored object has about ten fields that are worth a filter. */
export const parametersMax = 32

/** Characters in the name of a parameter or of a field. The longest name of ours has 19. */
export const nameCharsMax = 128

/** Parts of a dotted name. `keys.auth` has two; each part may read the nested object once more. */
export const namePartsMax = 5

/** Different fields in `_fields`: each is looked up in every object. */
export const fieldsMax = 64

/** Different fields in `_sort`: each is looked up, and may be written out, for every object. */
export const sortKeysMax = 8

/** Values in `in_` and `exclude_`. A user has at most 50 subscriptions and 1,000 tombstones. */
export const valuesMax = 1_100

/**
 * Characters in the pattern of `like_`. Searching a text costs at most its length times that of the
 * pattern: 16 KiB (the largest stored text) times 256 take less than 5 ms.
 */
export const patternCharsMax = 256

/**
 * Characters in the URL of Next-Page. Proxies take a request line of 8 KiB (nginx, HAProxy), and
 * this server a whole head of 16 KiB. What is left is for the method and the version.
 */
export const nextPageCharsMax = 8_000

/** Why a field's name cannot be looked up; undefined when it can. */
export const nameError = (name: string): string | undefined => {
  if (name.length > nameCharsMax)
    return `A field's name must not have more than ${nameCharsMax} characters`
  return name.split(".").length > namePartsMax
    ? `A field's name must not have more than ${namePartsMax} parts`
    : undefined
}
