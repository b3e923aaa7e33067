// The promises of a bus between nodes, for every implementation, over its real server.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { BusMeter, ClusterBus, ClusterListener } from '../../src/bus/cluster-bus.ts'

export type BusServer = {
  open(node: string, meter: BusMeter): Promise<ClusterBus>
  /** Cuts the connections of all buses. They can connect again, at the latest after `heal`. */
  cut(): Promise<void>
  heal(): Promise<void>
  stop(): Promise<void>
}

/** Keeps what a node hears, and resolves waits for it. */
class Ears implements ClusterListener {
  readonly announcements: [runId: string, seq: number][] = []
  readonly signals: (string | null)[] = []
  readonly changes: string[] = []
  misses = 0
  private waiters: (() => void)[] = []

  announced(runId: string, seq: number, at: number): void {
    assert.ok(at > 0)
    this.announcements.push([runId, seq])
    this.heard()
  }

  signalled(runId: string | null): void {
    this.signals.push(runId)
    this.heard()
  }

  changed(owner: string): void {
    this.changes.push(owner)
    this.heard()
  }

  missed(): void {
    this.misses += 1
    this.heard()
  }

  async until(fits: () => boolean): Promise<void> {
    while (!fits()) await new Promise<void>((resolve) => this.waiters.push(resolve))
  }

  private heard(): void {
    for (const wake of this.waiters.splice(0)) wake()
  }
}

type Counts = { sent: number; received: number; reconnects: number }
type TestNode = { bus: ClusterBus; ears: Ears; counts: Counts }

export function clusterBusContract(name: string, start: () => Promise<BusServer>): void {
  describe(`the bus between nodes: ${name}`, () => {
    let server: BusServer
    let nodes = 0
    const open: ClusterBus[] = []

    before(async () => {
      server = await start()
    })
    after(async () => {
      for (const bus of open) await bus.close()
      await server.stop()
    })

    async function node(): Promise<TestNode> {
      nodes += 1
      const counts = { sent: 0, received: 0, reconnects: 0 }
      const bus = await server.open(`node-${nodes}`, {
        hintsSent: (count) => (counts.sent += count),
        hintsReceived: (count) => (counts.received += count),
        reconnected: () => (counts.reconnects += 1),
        delivered: () => {},
      })
      open.push(bus)
      const ears = new Ears()
      bus.listen(ears)
      return { bus, ears, counts }
    }

    it('hints reach every other node, and not the one that sent them', async () => {
      const [a, b, c] = [await node(), await node(), await node()]
      a.bus.announce('r1', 7)
      a.bus.signal('r2')
      a.bus.signal(null)
      a.bus.changed('änn 👋')
      for (const { ears, counts } of [b, c]) {
        await ears.until(() => ears.announcements.length > 0 && ears.signals.length > 1 && ears.changes.length > 0)
        assert.deepEqual(ears.announcements, [['r1', 7]])
        assert.deepEqual(new Set(ears.signals), new Set(['r2', null]))
        assert.deepEqual(ears.changes, ['änn 👋'])
        assert.equal(counts.received, 4)
      }
      // What b sends is heard by a after what a sent itself.
      b.bus.announce('r3', 1)
      await a.ears.until(() => a.ears.announcements.length > 0)
      assert.deepEqual(a.ears.announcements, [['r3', 1]])
      assert.deepEqual(a.ears.signals, [])
      assert.deepEqual(a.ears.changes, [])
      assert.equal(a.counts.sent, 4)
    })

    it('of many announcements at once only the newest of each run is sent, also if they need several messages', async () => {
      const [a, b] = [await node(), await node()]
      const runs = Array.from({ length: 1000 }, (_, index) => `01M7JV2Y1F6MX30SK9CYR${10_000 + index}`)
      for (let seq = 1; seq <= 20; seq += 1) for (const run of runs) a.bus.announce(run, seq)
      a.bus.announce(runs[0] as string, 3)
      await b.ears.until(() => b.ears.announcements.length >= runs.length)
      a.bus.announce('last', 1)
      await b.ears.until(() => b.ears.announcements.at(-1)?.[0] === 'last')
      assert.equal(b.ears.announcements.length, runs.length + 1)
      assert.deepEqual(
        new Map(b.ears.announcements),
        new Map<string, number>([...runs.map((run) => [run, 20] as const), ['last', 1]]),
      )
    })

    it('after the connection was lost every node is told, and hints flow again', async () => {
      const [a, b] = [await node(), await node()]
      await server.cut()
      a.bus.announce('while-cut', 4)
      a.bus.signal('asked-while-cut')
      await server.heal()
      await a.ears.until(() => a.ears.misses > 0)
      await b.ears.until(() => b.ears.misses > 0)
      assert.equal(a.counts.reconnects, a.ears.misses)
      // A hint may still be lost while the subscription of the other node is on its way.
      let seq = 4
      const repeated = setInterval(() => {
        a.bus.announce('later', ++seq)
        b.bus.signal('to-a')
      }, 5)
      try {
        await b.ears.until(() => b.ears.announcements.some(([runId]) => runId === 'later'))
        await a.ears.until(() => a.ears.signals.includes('to-a'))
      } finally {
        clearInterval(repeated)
      }
    })

    it('closing sends what is waiting, and then hears and sends nothing more', async () => {
      const [a, b] = [await node(), await node()]
      a.bus.announce('farewell', 9)
      await a.bus.close()
      await b.ears.until(() => b.ears.announcements.length > 0)
      assert.deepEqual(b.ears.announcements, [['farewell', 9]])
      a.bus.announce('too-late', 1)
      a.bus.signal(null)
      await a.bus.close()
      assert.equal(a.counts.sent, 1)
    })
  })
}
