// A model that may ask, and does so in plain text instead of with its tool: the job waits for the
// reply as for any other question, and goes on with it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { messagesOf, says, someone, startTestServerProcess } from '../support/test-server.ts'
import { families, jobOf, startJob, sharedJobServer } from '../support/jobs.ts'

const { server, folder } = sharedJobServer()

describe('an interactive job whose model asks in words', () => {
  for (const family of families) {
    test(`waits for the reply, gives it to the model, and ends (${family})`, async () => {
      const user = someone()
      await server.provider.script([says('Which ', 'one?'), says('{"done":true}')], user)
      const job = await startJob(server, family, user)
      await job.reaches('waiting_user')

      const pending = await job.get('/interaction/pending')
      const { interaction_id, kind, prompt } = pending.body.pending
      assert.deepEqual({ interaction_id, kind, prompt }, { interaction_id: 1, kind: 'open_text', prompt: 'Which one?' })

      const stream = await job.events()
      await job.reply(1, `The red one, ${user}`)
      await job.reaches('succeeded')
      await stream.ended()

      const told = messagesOf((await server.asked(user)).at(-1)).slice(-2)
      assert.deepEqual(
        told.map(({ role, content }) => [role, content]),
        [
          ['assistant', 'Which one?'],
          ['user', `The red one, ${user}`],
        ],
      )
      const types = stream.frames
        .filter(({ event }) => event === 'chat_event')
        .map((frame) => JSON.parse(frame.data).type)
      assert.deepEqual(types, [
        'conversation.state.changed',
        'conversation.started',
        'assistant.message.final',
        'conversation.state.changed',
        'user.input.required',
        'interaction.reply.accepted',
        'conversation.state.changed',
        'conversation.state.changed',
        'assistant.message.final',
        'conversation.state.changed',
        'conversation.completed',
      ])
      assert.equal((await job.get('/invariants')).body.kept, true)
      assert.deepEqual((await job.get('/result')).body.result.data, { done: true })
    })
  }

  test('goes on without a reply if the job does not require one', async () => {
    const user = someone()
    await server.provider.script([says('Which one?')], user)
    await server.provider.script([says('{"done":true}')], 'user_no_reply')
    const job = await startJob(server, 'jobs', user, { interactive_require_user_reply: false, session_timeout_sec: 1 })

    await job.reaches('succeeded')

    assert.equal((await job.get()).body.auto_decision_count, 1)
  })

  test('still fails on JSON that does not fit, also when asked once more: that is an answer, and a wrong one', async () => {
    const user = someone()
    // The complaint names the property, so the repair request carries the marker of this script.
    const wrong = says(JSON.stringify({ [user]: 1 }))
    await server.provider.script([wrong, wrong], user)
    const job = await startJob(server, 'jobs', user)

    const { error } = await job.reaches('failed')

    assert.equal(error.code, 'job_output_invalid')
  })

  test('is still waiting after a restart, and takes the reply then', async () => {
    const user = someone()
    await server.provider.script([says('Which one?'), says('{"done":true}')], user)
    const mortal = await startTestServerProcess({ POLYLOG_SKILLS_DIR: folder }, server.provider)
    const job = await startJob(mortal, 'jobs', user)
    await job.reaches('waiting_user')
    await mortal.polylog.kill()
    const restarted = await mortal.restart()
    const again = jobOf(restarted, 'jobs', user, job.id)

    await again.reply(1, `The blue one, ${user}`)

    await again.reaches('succeeded')
    await restarted.close()
  })
})
