// Clients of A2A and LangGraph whose server is killed: in the middle of an answer, and while a task waits
// for a person. After the restart they subscribe, join or answer, and miss and repeat nothing.

import { Client } from '@langchain/langgraph-sdk'
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { a2aClients, type PlainUpdate, statesOf, textShown } from '../support/a2a-client.ts'
import type { Action } from '../support/fake-provider.ts'
import {
  calls,
  hangsAfter,
  type Json,
  says,
  someone,
  startTestServerProcess,
  type TestServerProcess,
} from '../support/test-server.ts'

const agent = 'chat_conversation'
const human = (content: string) => ({ messages: [{ type: 'human', content }] })

let server: TestServerProcess

before(async () => {
  server = await startTestServerProcess()
})
after(async () => {
  await server.close()
})

async function killAndRestart(): Promise<void> {
  await server.polylog.kill()
  server = await server.restartProcess()
}

/** The answer to the question that is asked again: the same beginning, then a stall, so that a reader can come back in time. */
const goesOn: Action[] = [{ text: ['One, '] }, { stall: true }, { text: ['two.'] }, { finish: 'stop' }]

for (const { name, open } of a2aClients) {
  describe(`the A2A client ${name}`, () => {
    const start = async () => await open({ baseUrl: server.polylog.baseUrl })

    test('subscribes after a kill in the middle of an answer, and sees each word once', async () => {
      const marker = someone()
      await server.provider.script([hangsAfter('One, '), goesOn], marker)
      let taskId = ''
      const seen: PlainUpdate[] = []
      const client = await start()
      await assert.rejects(async () => {
        for await (const update of client.stream(marker)) {
          seen.push(update)
          if ('task' in update) taskId = update.task.id
          if (textShown(seen)[0] === 'One, ') await server.polylog.kill()
        }
        throw new Error('the stream ended')
      })
      await killAndRestart()
      await server.askedTimes(marker, 2)

      const rest: PlainUpdate[] = []
      for await (const update of (await start()).subscribe(taskId)) {
        rest.push(update)
        if (rest.length === 1) await server.provider.release()
      }

      assert.deepEqual(textShown(rest), ['One, two.'])
      assert.equal(statesOf(rest).at(-1), 'COMPLETED')
      assert.deepEqual((await (await start()).get(taskId)).artifacts, ['One, two.'])
    })

    test('answers a question after a kill, once', async () => {
      const marker = someone()
      await server.provider.script([calls(['remember_note', { text: marker }]), says('Noted.')], marker)
      const task = await (await start()).send(marker)
      assert.equal(task.state, 'INPUT_REQUIRED')

      await killAndRestart()
      const client = await start()
      const waiting = await client.get(task.id)
      const ended = await client.send('yes', { taskId: task.id })

      assert.deepEqual(waiting, task)
      assert.deepEqual([ended.state, ended.artifacts], ['COMPLETED', ['Noted.']])
      await assert.rejects(client.send('yes', { taskId: task.id }), { name: 'UnsupportedOperationError' })
    })
  })
}

describe('the LangGraph client', () => {
  const start = () =>
    new Client({
      apiUrl: `${server.polylog.baseUrl}/langgraph`,
      apiKey: null,
      callerOptions: { maxRetries: 0 },
    })
  type Event = { id?: string; event: string; data: Json }
  const chunksOf = (events: readonly Event[]) =>
    events
      .filter(({ event }) => event === 'messages')
      .map(({ data }) => (data as unknown as Json[])[0]?.['content'])
      .join('')

  test('joins after a kill in the middle of an answer, with the id of its last event', async () => {
    const marker = someone()
    await server.provider.script([hangsAfter('One, '), goesOn], marker)
    const { thread_id } = await start().threads.create()
    const run = await start().runs.create(thread_id, agent, { input: human(marker) })
    const first: Event[] = []
    for await (const event of start().runs.joinStream(thread_id, run.run_id, {
      streamMode: ['messages-tuple', 'values'],
    })) {
      first.push(event)
      if (chunksOf(first) === 'One, ') break
    }

    await killAndRestart()
    await server.askedTimes(marker, 2)
    const rest: Event[] = []
    const lastEventId = first.at(-1)?.id ?? ''
    for await (const event of start().runs.joinStream(thread_id, run.run_id, {
      lastEventId,
      streamMode: ['messages-tuple', 'values'],
    })) {
      rest.push(event)
      if (rest.length === 1) await server.provider.release()
    }

    assert.equal(chunksOf([...first, ...rest]), 'One, two.')
    const messages = (rest.at(-1)?.data['messages'] ?? []) as Json[]
    assert.deepEqual(
      messages.map(({ content }) => content),
      [marker, 'One, two.'],
    )
  })

  test('resumes an interrupt after a kill', async () => {
    const marker = someone()
    await server.provider.script([calls(['remember_note', { text: marker }]), says('Noted.')], marker)
    const { thread_id } = await start().threads.create()
    const asked = (await start().runs.wait(thread_id, agent, { input: human(marker) })) as Json

    await killAndRestart()
    const state = await start().threads.getState(thread_id)
    const done = (await start().runs.wait(thread_id, agent, {
      command: { resume: { decisions: [{ type: 'approve' }] } },
    })) as Json

    assert.deepEqual(state.tasks[0]?.interrupts, asked.__interrupt__)
    assert.equal((done.messages as Json[]).at(-1)?.['content'], 'Noted.')
  })
})
