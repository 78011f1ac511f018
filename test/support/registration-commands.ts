// Commands about registrations, for tests of a user's registrations and of their count.
import type { RegistrationCommand } from "#domain/registration.ts"

export const register = (at = 0): RegistrationCommand => ({
  type: "registration.put",
  user: "u",
  at
})
export const unregister = (at = 0): RegistrationCommand => ({
  type: "registration.delete",
  user: "u",
  at
})
