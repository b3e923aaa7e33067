// Finds the users of stored API keys for the authenticator. A key that was found is remembered for a moment, so a
// revocation reaches every node within that time. Uses are recorded now and then, in one write for all keys.

import { AppError } from '../errors/app-error.ts'
import { hasAuthSecret } from '../http/caller.ts'
import { hashOfApiKey, isApiKeyText } from '../kit/api-key.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import type { ApiKeyRow, KeyStore } from '../stores/key-store.ts'
import type { Config } from './config.ts'

/** How long a revoked key may still work. */
const rememberedMs = 2_000
/** How exact the last use is. */
const usesEveryMs = 60_000
/** If more keys are in use at once, the oldest are asked for again. */
const rememberedMax = 10_000

export type StoredKeysDependencies = {
  store: Pick<KeyStore, 'findKey' | 'recordKeyUse'>
  clock: Clock
  onError: (error: unknown) => void
}

export class StoredKeys {
  private readonly dependencies: StoredKeysDependencies
  /** By hash, oldest first. */
  private readonly remembered = new Map<string, { until: number; row: Promise<ApiKeyRow | undefined> }>()
  private readonly recordedAt = new Map<string, number>()
  private used = new Set<string>()
  private timer: Timer | undefined

  constructor(dependencies: StoredKeysDependencies) {
    this.dependencies = dependencies
  }

  /** The user; undefined if the key is unknown, revoked or expired. Throws `store_unavailable` if the database does not answer. */
  async find(key: string): Promise<string | undefined> {
    if (!isApiKeyText(key)) return undefined
    const row = await this.read(hashOfApiKey(key))
    if (row === undefined || row.revokedAt !== null) return undefined
    if (row.expiresAt !== null && row.expiresAt <= this.dependencies.clock.now()) return undefined
    this.noteUse(row.id)
    return row.owner
  }

  /** Records the uses that are not recorded yet. */
  async close(): Promise<void> {
    this.timer?.cancel()
    await this.recordUses()
  }

  private async read(hash: string): Promise<ApiKeyRow | undefined> {
    const { store, clock } = this.dependencies
    const now = clock.monotonic()
    const known = this.remembered.get(hash)
    if (known !== undefined && now < known.until) return await known.row
    this.remembered.delete(hash)
    const row = store.findKey(hash)
    this.remembered.set(hash, { until: now + rememberedMs, row })
    if (this.remembered.size > rememberedMax) {
      const [oldest = hash] = this.remembered.keys()
      this.remembered.delete(oldest)
    }
    try {
      const found = await row
      // A guess is not remembered: it would push out keys that are in use.
      if (found === undefined) this.remembered.delete(hash)
      return found
    } catch (error) {
      this.remembered.delete(hash)
      throw error
    }
  }

  private noteUse(id: string): void {
    const { clock } = this.dependencies
    const recordedAt = this.recordedAt.get(id)
    if (recordedAt !== undefined && clock.monotonic() - recordedAt < usesEveryMs) return
    this.used.add(id)
    // The first use is recorded soon, so that an operator sees that a new key works.
    this.timer ??= clock.after(1_000, () => {
      this.timer = undefined
      void this.recordUses()
    })
  }

  private async recordUses(): Promise<void> {
    const ids = [...this.used]
    if (ids.length === 0) return
    this.used = new Set()
    const { store, clock, onError } = this.dependencies
    const now = clock.monotonic()
    if (this.recordedAt.size > rememberedMax) this.recordedAt.clear()
    for (const id of ids) this.recordedAt.set(id, now)
    await store.recordKeyUse(ids, clock.now()).catch(onError)
  }
}

/** A server that requires logins and can check none would be of use to nobody. Revoked keys count: others can be made. */
export async function refuseWithoutLogins(
  { auth }: Pick<Config, 'auth'>,
  store: Pick<KeyStore, 'listKeys'>,
): Promise<void> {
  if (auth.mode !== 'required' || hasAuthSecret(auth) || (await store.listKeys({ limit: 1 })).length > 0) return
  throw new AppError(
    'config_invalid',
    'POLYLOG_AUTH is required, and there is nothing to check a login with; make an API key (polylog keys create <user>), or set at least one of POLYLOG_JWT_SECRET, POLYLOG_JWKS_URL and POLYLOG_API_KEYS.',
  )
}
