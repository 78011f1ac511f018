// The responses to what is not a complete HTTP request.
import type { Row } from "./errors.ts"
import type { ApiResponse } from "./request.ts"

/** Errors in what a client sent before it is a complete HTTP request, by the code of Node.js. */
export const wireErrors = {
  HPE_HEADER_OVERFLOW: {
    code: 431,
    errno: 107,
    error: "Request Header Fields Too Large",
    message: "The headers or the URL are too large."
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    code: 408,
    errno: 107,
    error: "Request Timeout",
    message: "The request did not arrive in time."
  },
  noHost: {
    code: 400,
    errno: 107,
    error: "Bad Request",
    message: "The request does not name its Host."
  },
  wrongHost: {
    code: 400,
    errno: 107,
    error: "Bad Request",
    message: "The request names its Host twice, or its Host is none."
  },
  twoAuthorizations: {
    code: 400,
    errno: 107,
    error: "Bad Request",
    message: "The request has two Authorization headers."
  },
  other: { code: 400, errno: 107, error: "Bad Request", message: "This is not HTTP." }
} as const satisfies Record<string, Row>

/** The error response for an error code of Node.js. */
export const wireErrorResponse = (code: string | undefined): ApiResponse => {
  const row = Object.hasOwn(wireErrors, code ?? "")
    ? wireErrors[code as keyof typeof wireErrors]
    : wireErrors.other
  return { status: row.code, headers: {}, body: row, errno: row.errno }
}
