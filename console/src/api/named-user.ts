// The routes under /api want the name of a user in every request, also that of the anonymous one.

import { type Session, session } from './session.ts'

/** The name that the server gives to users who name none. */
const anonymous = 'anonymous'

export function userQuery({ token, user }: Session = session.get()): Record<string, string> {
  return token === null ? { userId: user ?? anonymous } : {}
}
