// Windows of rate limits, in a table without a write-ahead log: a hit costs no disk access.

import type { RateStore, RateWindow } from '../rate-store.ts'
import { rowReader } from './columns.ts'
import type { PartAccess } from './part-access.ts'

const toWindow = rowReader<RateWindow>({ key: 'value', current: 'value', leftMs: 'value' })

/** In the order of the keys, so that two nodes cannot wait for each other. */
const addHits = `
  WITH clock AS (SELECT polylog_now() AS now)
  INSERT INTO rate_windows AS known (key, hits, until)
  SELECT given.key, given.hits, clock.now + ?::bigint
  FROM unnest(?::text[], ?::bigint[]) AS given (key, hits), clock ORDER BY given.key
  ON CONFLICT (key) DO UPDATE SET
    hits = CASE WHEN known.until <= (SELECT now FROM clock) THEN excluded.hits ELSE known.hits + excluded.hits END,
    until = CASE WHEN known.until <= (SELECT now FROM clock) THEN excluded.until ELSE known.until END
  RETURNING key, hits AS current, until - (SELECT now FROM clock) AS left_ms`

export function rateStore({ read }: PartAccess): RateStore {
  return {
    // Each is one statement, which is its own transaction.
    addHits: (hits, windowMs) =>
      read(async (db) => {
        const rows = await db.all(
          addHits,
          windowMs,
          hits.map(({ key }) => key),
          hits.map(({ count }) => count),
        )
        return rows.map(toWindow)
      }),
    removeOldWindows: (limit) =>
      read((db) =>
        db.run(
          `DELETE FROM rate_windows WHERE key = ANY (ARRAY(
             SELECT key FROM rate_windows WHERE until <= polylog_now() ORDER BY until LIMIT ? FOR UPDATE SKIP LOCKED))`,
          limit,
        ),
      ),
  }
}
