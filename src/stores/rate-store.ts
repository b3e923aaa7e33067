// How often things happened in windows of time that all nodes share: requests of a caller, failed
// logins of an address. A crash of the database may lose the counts, which only lets callers do more.

/** How often a key occurred since it was counted last. */
export type RateHit = { key: string; count: number }

/** The window of a key after its hits were added: their sum, and how long it lasts. */
export type RateWindow = { key: string; current: number; leftMs: number }

export interface RateStore {
  /**
   * Adds all hits at once, each key at most once. A window lasts `windowMs` from its first hit, by the clock of the store; the
   * next hit begins a new one.
   */
  addHits(hits: readonly RateHit[], windowMs: number): Promise<RateWindow[]>
  /** Removes at most `limit` windows that are over. Returns how many. */
  removeOldWindows(limit: number): Promise<number>
}
