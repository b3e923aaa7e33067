// `polylog keys`: makes, lists and revokes API keys in the database of the settings, beside servers that use it.

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import { userCharsMax } from '../http/caller.ts'
import { apiKeyBytes, apiKeyText, hashOfApiKey } from '../kit/api-key.ts'
import type { Clock } from '../kit/clock.ts'
import { ulidIds } from '../kit/ids.ts'
import type { ApiKeyRow, KeyStore } from '../stores/key-store.ts'
import { openDatabaseKeys } from '../stores/postgres/key-store.ts'
import { openFileKeys } from '../stores/sqlite/key-store.ts'
import type { Config } from './config.ts'
import { databaseName } from './data-folder.ts'
import { migrateDatabase } from './migrate-database.ts'

const nameCharsMax = 200
/** More are not for people to read. */
const listedMax = 10_000

export type NewKeyRequest = { owner: string; name: string | null; expiresInMs: number | null }

export class KeyDesk {
  private readonly store: KeyStore & { close(): Promise<void> }
  private readonly clock: Pick<Clock, 'now'>

  private constructor(store: KeyStore & { close(): Promise<void> }, clock: Pick<Clock, 'now'>) {
    this.store = store
    this.clock = clock
  }

  /** Applies missing migrations first, so that keys can be made before the first start. */
  static async open(
    config: Pick<Config, 'databaseUrl' | 'dataDir'>,
    clock: Pick<Clock, 'now'>,
    note: (sentence: string) => void,
  ): Promise<KeyDesk> {
    await migrateDatabase(config, { check: false, note })
    const { databaseUrl, dataDir } = config
    return new KeyDesk(
      databaseUrl === null ? openFileKeys(join(dataDir, databaseName)) : openDatabaseKeys(databaseUrl),
      clock,
    )
  }

  /** The only time that the key itself is known. */
  async make({ owner, name, expiresInMs }: NewKeyRequest): Promise<{ key: string; row: ApiKeyRow }> {
    if (owner.trim() === '' || owner.length > userCharsMax) {
      throw new AppError('invalid_request', `The user must have from 1 to ${userCharsMax} characters.`)
    }
    if (name !== null && name.length > nameCharsMax) {
      throw new AppError('invalid_request', `The name must have at most ${nameCharsMax} characters.`)
    }
    const key = apiKeyText(randomBytes(apiKeyBytes))
    const now = this.clock.now()
    const row = {
      id: `key_${ulidIds(() => now)()}`,
      owner: owner.trim(),
      name,
      createdAt: now,
      expiresAt: expiresInMs === null ? null : now + expiresInMs,
    }
    await this.store.addKey({ ...row, hash: hashOfApiKey(key) })
    return { key, row: { ...row, revokedAt: null, lastUsedAt: null } }
  }

  async list(owner?: string): Promise<ApiKeyRow[]> {
    return await this.store.listKeys({ ...(owner === undefined ? {} : { owner }), limit: listedMax })
  }

  async revoke(id: string): Promise<ApiKeyRow | undefined> {
    return await this.store.revokeKey(id, this.clock.now())
  }

  async close(): Promise<void> {
    await this.store.close()
  }
}
