// Who asks for something, and whether a thing is theirs. Services take a caller and return
// what is theirs; http/ finds out who the caller is.

/** `named` is false if the request names no user, which is possible in open mode only. */
export type Caller = { userId: string; loggedIn: boolean; named: boolean }

/**
 * The user that a request acts as on one thing that it addresses by its id. In open mode a request that names no user
 * acts as the thing's owner: it could claim that name anyway. Not for lists, and not for names that clients choose.
 */
export function actsAs(caller: Caller, thing: { owner: string } | undefined): string {
  return caller.named || thing === undefined ? caller.userId : thing.owner
}

/** Whether a thing that the request addresses by its id is the caller's. If not, it does not exist for them (404). */
export function owns(caller: Caller, thing: { owner: string }): boolean {
  return thing.owner === actsAs(caller, thing)
}

/** A caller who is known to be this user. */
export function asUser(userId: string): Caller {
  return { userId, loggedIn: true, named: true }
}
