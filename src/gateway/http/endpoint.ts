// The part of an endpoint that routing, CORS and CSRF need. Operations are in operation.ts.

export type Method = "GET" | "POST" | "PUT" | "DELETE"

/** The rules of an operation that hold before it runs. */
export interface OperationRules {
  /**
   * `open`: pages of any origin may send this request. For logins that return as a form post or a
   * redirect, and for scripts that other origins load. Unset: cross-site.ts checks requests that
   * change data.
   */
  readonly crossSite?: "open"
  /** Response headers that scripts may read, besides those of every response. */
  readonly exposes?: ReadonlyArray<string>
}

export interface Endpoint<O extends OperationRules = OperationRules> {
  readonly name: string
  /** The path after the version; `:name` stands for one segment. */
  readonly path: string
  /** The methods in the order of the Allow header. */
  readonly allow: ReadonlyArray<string>
  readonly operations: Readonly<Partial<Record<Method, O>>>
}

/** The operation of a method. HEAD runs the operation of GET. */
export const operationOf = <O extends OperationRules>(
  { operations }: Endpoint<O>,
  method: string
): O | undefined => {
  const name = method === "HEAD" ? "GET" : method
  return Object.hasOwn(operations, name) ? operations[name as Method] : undefined
}
