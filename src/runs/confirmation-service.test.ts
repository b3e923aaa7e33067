// Decisions on tool calls: whose they are, that each counts once, and what is kept of them.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { calls, openRig, type Rig, type RigOptions, says, toolOf } from '../../test/support/run-rig.ts'
import { asUser } from '../kit/caller.ts'
import { ConfirmationService } from './confirmation-service.ts'
import { ended } from '../../test/support/run-helpers.ts'

async function withRig(options: RigOptions, body: (rig: Rig) => Promise<void>): Promise<void> {
  const rig = await openRig(options)
  try {
    await body(rig)
  } finally {
    await rig.close()
  }
}

describe('a decision', () => {
  const send = toolOf({
    name: 'send',
    effect: 'unsafe',
    confirm: 'always',
    run: async () => ({ ok: true, output: 'sent', summary: 'sent' }),
  })
  const answer: RigOptions['answer'] = ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? says('Sent.') : calls({ callId: 'k', name: 'send', input: { to: 'bob' } })

  const waiting = async (rig: Rig) => {
    const { run } = await rig.start()
    await rig.until(run.id, ({ status }) => status === 'waiting_user')
    const [row] = await rig.store.interactionsOf(run.id)
    return { run, row: row ?? assert.fail('no question') }
  }

  it('stays as it was made when the run is cancelled before the call ran', async () => {
    await withRig({ answer, tools: [send] }, async (rig) => {
      const { run, row } = await waiting(rig)
      await rig.store.decide(row.id, { status: 'rejected', by: 'ada', at: rig.clock.now(), reason: 'not now' })
      await rig.service.cancel('ada', run.id, null)

      const after = await rig.store.readInteraction(row.id)
      assert.deepEqual([after?.status, after?.reason, after?.decidedBy], ['rejected', 'not now', 'ada'])
    })
  })

  it('that was never made is closed with its run', async () => {
    await withRig({ answer, tools: [send] }, async (rig) => {
      const { run, row } = await waiting(rig)
      await rig.service.cancel('ada', run.id, null)

      assert.equal((await rig.store.readInteraction(row.id))?.status, 'closed')
      await assert.rejects(rig.confirm('ada', row.id, undefined), { code: 'tool_confirmation_resolved' })
    })
  })

  it('counts once, can be made by its owner only, and keeps both what was shown and what was changed', async () => {
    await withRig({ answer, tools: [send] }, async (rig) => {
      const { run, row } = await waiting(rig)

      await assert.rejects(rig.confirm('eve', row.id, undefined), { code: 'tool_confirmation_not_found' })
      const decided = await rig.confirm('ada', row.id, { to: 'eve' })
      await assert.rejects(rig.reject('ada', row.id, 'no'), {
        code: 'tool_confirmation_resolved',
        details: { confirmationId: row.id, status: 'confirmed' },
      })
      // On PostgreSQL the refused decision locks the run for a moment. A claim at that moment passes over it, and would be
      // repeated by a timer of the clock, which stands still here.
      rig.scheduler.poke()
      await rig.until(run.id, ended)

      assert.deepEqual(decided.response, { to: 'eve' })
      const after = await rig.store.readInteraction(row.id)
      assert.deepEqual([after?.status, after?.input, after?.response], ['confirmed', { to: 'bob' }, { to: 'eve' }])
    })
  })

  it('is listed for its owner only, and found by its owner and by a caller who names no user', async () => {
    await withRig({ answer, tools: [send] }, async (rig) => {
      const { run, row } = await waiting(rig)
      const confirmations = new ConfirmationService(rig.dependencies, rig.scheduler)

      const idsOf = async (owner: string) => (await confirmations.list(owner, { limit: 9 })).rows.map(({ id }) => id)
      assert.deepEqual([await idsOf('ada'), await idsOf('eve')], [[row.id], []])
      assert.deepEqual((await confirmations.openOf(run)).length, 1)
      assert.equal((await confirmations.get(asUser('ada'), row.id)).id, row.id)
      const nobody = { userId: 'anonymous', loggedIn: false, named: false }
      assert.equal((await confirmations.get(nobody, row.id)).id, row.id)
      const notFound = { code: 'tool_confirmation_not_found' }
      await assert.rejects(confirmations.get(asUser('eve'), row.id), notFound)
      await assert.rejects(confirmations.list('eve', { limit: 9, before: row.id }), notFound)
    })
  })
})
