// When the main thread counts as blocked: the watchdog compares heartbeats with its own ticks.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BlockWatch } from './block-watch.ts'

const limits = { tickMs: 100, blockedMs: 300, freezeMaxMs: 1000 }

/** What each tick says; a number is the heartbeat count at that tick. */
const watched = (beats: number[], freezeMaxMs = limits.freezeMaxMs) => {
  const watch = new BlockWatch({ ...limits, freezeMaxMs })
  return beats.map((beat) => {
    const event = watch.tick(beat)
    return 'ms' in event ? `${event.is} ${event.ms}` : event.is
  })
}

describe('the main thread', () => {
  it('is fine while its heart beats, also when a beat comes late', () => {
    assert.deepEqual(watched([1, 2, 2, 2, 3, 9]), ['fine', 'fine', 'fine', 'fine', 'fine', 'fine'])
  })

  it('is blocked after the bound, once, and the length of the block is reported when it is over', () => {
    assert.deepEqual(watched([1, 1, 1, 1, 1, 2, 3]), [
      'fine',
      'fine',
      'fine',
      'blocked',
      'still blocked',
      'over 400',
      'fine',
    ])
  })

  it('is frozen when the block does not end in time, unless that is switched off', () => {
    const beats = Array.from({ length: 12 }, () => 1)
    assert.equal(watched(beats)[10], 'frozen 1000')
    assert.ok(!watched(beats, 0).some((said) => said.startsWith('frozen')))
  })
})
