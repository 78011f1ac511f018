// The user of a caller, as the service shows it.

export interface User {
  readonly id: string
  readonly principals: ReadonlyArray<string>
}

/** The user whom a response to `GET /v1/` names; undefined: nobody. */
export const userIn = async (response: Response): Promise<User | undefined> =>
  ((await response.json()) as { user?: User }).user
