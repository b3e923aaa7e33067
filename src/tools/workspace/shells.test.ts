// Commands in the background, over all sessions of a server.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countingIds } from '../../../test/support/run-rig.ts'
import { openBench } from '../../../test/support/workspace.ts'
import { systemClock } from '../../kit/clock.ts'
import { Shells } from './shells.ts'

test('commands of all sessions together are bounded, those that run and those that are kept', async (t) => {
  const bench = openBench()
  const shells = new Shells({
    clock: systemClock,
    ids: countingIds(`shells-${process.pid}`),
    sandbox: { kind: 'none', command: (cmd) => ['/bin/bash', '-c', cmd] },
    serverLimits: { running: 2, kept: 3 },
  })
  t.after(async () => {
    await shells.close()
    await bench.close()
  })
  const workspace = await bench.folders.of({ workspace: { dir: 'mine' } })
  const start = (session: string, cmd: string) => shells.startInBackground(session, cmd, workspace, 60_000)

  const first = await start('a', 'sleep 600')
  await start('b', 'sleep 600')
  await assert.rejects(start('c', 'true'), { code: 'file_refused', message: /Too many commands/ })

  shells.remove(shells.find('a', first)!)
  const ended: string[] = []
  for (const session of ['c', 'd', 'e', 'f']) {
    const id = await start(session, 'true')
    await shells.find(session, id)!.process.ended
    ended.push(id)
  }
  const kept = ['c', 'd', 'e', 'f'].filter((session, index) => shells.find(session, ended[index]!) !== undefined)
  assert.deepEqual(kept, ['e', 'f'], 'the oldest that ended go first, and what runs stays')
})
