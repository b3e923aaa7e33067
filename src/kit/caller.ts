// The caller of a request, and the check of ownership. http/ identifies the caller;
// services take a caller and return only what that caller owns.

/** `named` is false if the request names no user, which is possible in open mode only. */
export type Caller = { userId: string; loggedIn: boolean; named: boolean }

/**
 * The user as whom a request acts on a thing that it addresses by id. In open mode a request that names no user acts as the
 * thing's owner, because it could claim that name anyway. Do not use it for lists or for names that clients choose.
 */
export function actsAs(caller: Caller, thing: { owner: string } | undefined): string {
  return caller.named || thing === undefined ? caller.userId : thing.owner
}

/** True if the caller owns a thing that the request addresses by id. If not, the reply must be 404, as if it did not exist. */
export function owns(caller: Caller, thing: { owner: string }): boolean {
  return thing.owner === actsAs(caller, thing)
}

/** A caller that is authenticated as this user. */
export function asUser(userId: string): Caller {
  return { userId, loggedIn: true, named: true }
}
