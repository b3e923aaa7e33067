// Who looks: a login for servers that need one, or the name of a user for open servers. The login is kept in
// sessionStorage, so it ends with the tab; it never becomes part of an address and is never logged.

import { createStore } from '../app/store.ts'

export type Session = {
  /** A token or an API key; null: requests carry no login. */
  token: string | null
  /** The user that requests name; null: anonymous. Only for open servers. */
  user: string | null
  /** Another one after each sign-in, sign-out and change of the user. */
  number: number
}

const tokenKey = 'polylog.token'
const userKey = 'polylog.user'

export const session = createStore<Session>({
  token: read(() => sessionStorage.getItem(tokenKey)),
  user: read(() => localStorage.getItem(userKey)),
  number: 0,
})

/** Why the sign-in dialog is open; null if it is not. */
export const signInRequest = createStore<'needed' | 'refused' | null>(null)

export function signIn(token: string): void {
  write(() => sessionStorage.setItem(tokenKey, token))
  signInRequest.set(null)
  session.set((old) => ({ ...old, token, number: old.number + 1 }))
}

export function signOut(): void {
  write(() => sessionStorage.removeItem(tokenKey))
  session.set((old) => ({ ...old, token: null, number: old.number + 1 }))
}

export function actAs(user: string | null): void {
  write(() => (user === null ? localStorage.removeItem(userKey) : localStorage.setItem(userKey, user)))
  if (user === session.get().user) return
  session.set((old) => ({ ...old, user, number: old.number + 1 }))
}

function read(get: () => string | null): string | null {
  try {
    return get() || null
  } catch {
    return null
  }
}

function write(change: () => void): void {
  try {
    change()
  } catch {
    // Without storage the session lasts until the page is loaded again.
  }
}
