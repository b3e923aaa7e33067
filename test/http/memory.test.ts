// What the model gets of earlier turns: the newest that fit the agent's memory, only whole turns,
// and never a call without its result.

import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  assertCallsArePaired,
  calls,
  endOf,
  type Json,
  messagesOf,
  says,
  someone,
  sharedTestServer,
} from '../support/test-server.ts'

// Only this agent is replaced; the built-in ones stay.
const agentsDir = mkdtempSync(join(tmpdir(), 'polylog-agents-'))
const builtIn = fileURLToPath(new URL('../../agents/chat_conversation', import.meta.url))
cpSync(builtIn, join(agentsDir, 'chat_conversation'), { recursive: true })
const file = join(agentsDir, 'chat_conversation', 'agent.json')
const card = JSON.parse(readFileSync(file, 'utf8')) as Json
writeFileSync(file, JSON.stringify({ ...card, memory: { strategy: 'sliding_window', maxTokens: 400 } }))
const server = sharedTestServer({ POLYLOG_AGENTS_DIR: agentsDir })
after(() => rmSync(agentsDir, { recursive: true, force: true }))

const talkOf = (messages: Json[]) => messages.filter(({ role }) => role !== 'system')

test('of a long conversation the model gets the newest turns that fit the agent’s memory, and calls with their results', async () => {
  const user = someone()
  const conversationId = `conv-${user}`
  const turns = 14
  for (let turn = 1; turn <= turns; turn++) {
    const marker = `turn ${turn}; ${user}`
    const withTool = turn % 2 === 0
    await server.provider.script(
      [
        ...(withTool ? [calls(['current_time', {}, `call_${turn}`])] : []),
        says(`answer ${turn}; ${'word '.repeat(20)}`),
      ],
      marker,
    )
    assert.equal(endOf(await server.chatToEnd(user, { input: marker, conversationId })).status, 'succeeded')
  }

  await server.chatToEnd(user, { input: `the last ${user}`, conversationId })

  const [asked] = await server.asked(`the last ${user}`)
  const messages = messagesOf(asked)
  const talk = talkOf(messages)
  assertCallsArePaired(messages)
  assert.equal(talk[0]?.role, 'user', 'a turn begins with its question')
  assert.equal(talk.at(-1)?.content, `the last ${user}`)
  assert.match(JSON.stringify(talk), new RegExp(`turn ${turns}; `))
  assert.doesNotMatch(JSON.stringify(talk), /turn [123]; /)
  // Four characters a token is the usual guess.
  assert.ok(JSON.stringify(talk.map(({ content }) => content)).length < 400 * 4 * 1.2)
  for (const request of await server.asked(user)) assertCallsArePaired(messagesOf(request))
})

test('a question that is larger than the memory is still asked, without the history', async () => {
  const user = someone()
  const conversationId = `conv-${user}`
  await server.chatToEnd(user, { input: 'small', conversationId })

  await server.chatToEnd(user, { input: `${'large '.repeat(2000)} ${user}`, conversationId })

  const [asked] = await server.asked(user)
  assert.deepEqual(
    talkOf(messagesOf(asked)).map(({ role }) => role),
    ['user'],
  )
})

test('within one run too: old steps are dropped as a whole, and the question stays', async () => {
  const user = someone()
  const steps = 12
  await server.provider.script(
    [...Array.from({ length: steps }, (_, step) => calls(['current_time', {}, `c${step}`])), says('Done.')],
    user,
  )

  const frames = await server.chatToEnd(user, user)

  assert.equal(endOf(frames).output, 'Done.')
  const last = messagesOf((await server.asked(user)).at(-1))
  assertCallsArePaired(last)
  assert.equal(talkOf(last)[0]?.content, user)
  assert.equal(last.at(-1)?.tool_call_id, `c${steps - 1}`)
  assert.ok(last.filter(({ role }) => role === 'tool').length < steps)
})

test('half answers of failed and cancelled runs are not sent to the model', async () => {
  const user = someone()
  const conversationId = `conv-${user}`
  await server.provider.script([[{ text: ['half a secret'] }, { cut: true }]], `first ${user}`)
  await server.chatToEnd(user, { input: `first ${user}`, conversationId })

  await server.chatToEnd(user, { input: `second ${user}`, conversationId })

  const [asked] = await server.asked(`second ${user}`)
  assert.deepEqual(
    talkOf(messagesOf(asked)).map(({ content }) => content),
    [`first ${user}`, `second ${user}`],
  )
})
