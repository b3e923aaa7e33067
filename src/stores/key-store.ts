// API keys that were made with `polylog keys`. The store has only hashes: a key that is lost cannot be shown again.
// Servers read them; the command writes them, beside servers that run.

export type ApiKeyRow = {
  id: string
  /** The user that a request with this key comes from. */
  owner: string
  /** For people, to tell keys apart. */
  name: string | null
  createdAt: number
  /** Null: never. */
  expiresAt: number | null
  revokedAt: number | null
  /** To the minute. Null: never used. */
  lastUsedAt: number | null
}

export type NewApiKey = Pick<ApiKeyRow, 'id' | 'owner' | 'name' | 'createdAt' | 'expiresAt'> & {
  /** SHA-256 in lower-case hexadecimal digits. */
  hash: string
}

export interface KeyStore {
  addKey(key: NewApiKey): Promise<void>
  /** Newest first; revoked ones too. */
  listKeys(filter: { owner?: string; limit: number }): Promise<ApiKeyRow[]>
  findKey(hash: string): Promise<ApiKeyRow | undefined>
  /** The first revocation counts. Undefined if there is no such key. */
  revokeKey(id: string, at: number): Promise<ApiKeyRow | undefined>
  /** Records the last use. Need not survive a crash of the database. */
  recordKeyUse(ids: readonly string[], at: number): Promise<void>
}
