// Other tests rely on the fake provider, so its own behaviour is checked here.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { startFakeProvider } from '../support/fake-provider.ts'
import type { FakeProvider } from '../support/fake-provider.ts'

let provider: FakeProvider

before(async () => {
  provider = await startFakeProvider()
})
beforeEach(() => provider.reset())
after(() => provider.stop())

async function ask(body: object): Promise<{ text: string; frames: string[] }> {
  const response = await fetch(`${provider.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer hidden' },
    body: JSON.stringify(body),
  })
  const frames = (await response.text()).split('\n\n').filter((frame) => frame !== '')
  const contents = frames
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice(6)) as { choices: { delta?: { content?: string } }[] })
    .map((chunk) => chunk.choices[0]?.delta?.content ?? '')
  return { text: contents.join(''), frames }
}

const user = (content: string) => ({ model: 'fake', messages: [{ role: 'user', content }] })

test('without a script it says hello, and repeats a tool result', async () => {
  assert.equal((await ask(user('hi'))).text, 'Hello from the fake provider.')
  assert.equal((await ask({ model: 'fake', messages: [{ role: 'tool', content: '42' }] })).text, 'Done: 42')
})

test('scripts are answered in order, and those for a text only to that text', async () => {
  await provider.script([
    [{ text: 'one' }, { finish: 'stop' }],
    [{ text: 'two' }, { finish: 'stop' }],
  ])
  await provider.script([[{ text: 'blue!' }, { finish: 'stop' }]], 'blue')

  assert.equal((await ask(user('red'))).text, 'one')
  assert.equal((await ask(user('a blue one'))).text, 'blue!')
  assert.equal((await ask(user('blue again'))).text, 'two')
  assert.equal((await ask(user('red'))).text, 'Hello from the fake provider.')
})

test('it remembers what it was asked, but not the key', async () => {
  await ask(user('hi'))

  const requests = await provider.requests()

  assert.equal(requests.length, 1)
  assert.equal(requests[0]?.body.messages?.[0]?.content, 'hi')
  assert.equal(requests[0]?.hasAuthorization, true)
  assert.equal(requests[0]?.closedEarly, false)
  assert.doesNotMatch(JSON.stringify(requests), /hidden/)
})

test('a stall ends when it is released', async () => {
  await provider.script([[{ text: 'a' }, { stall: true }, { text: 'b' }, { finish: 'stop' }]])

  const answer = ask(user('hi'))
  await provider.waitFor({ requests: 1 })
  await provider.release()

  assert.equal((await answer).text, 'ab')
})

test('a bench model streams as many chunks as its name says, paced or not', async () => {
  for (const model of ['bench-300-0', 'bench-5-1']) {
    const { frames } = await ask({ model, messages: [] })

    const chunks = Number(model.split('-')[1])
    assert.equal(frames.length, chunks + 3)
    assert.equal(frames.at(-1), 'data: [DONE]')
    assert.match(frames.at(-2) ?? '', new RegExp(`"completion_tokens":${chunks}`))
  }
})

test('a provider that was stopped is used again, as if it were new', async () => {
  const first = await startFakeProvider()
  const question = (marker: string) => ({ method: 'POST', body: JSON.stringify(user(marker)) })
  await first.script([[{ text: 'old' }, { stall: true }]], 'marker')
  const open = await fetch(`${first.baseUrl}/chat/completions`, question('marker'))
  await first.script([[{ text: 'never told' }, { finish: 'stop' }]], 'marker')
  await first.stop()
  await assert.rejects(open.text())

  const second = await startFakeProvider()

  assert.equal(second.baseUrl, first.baseUrl)
  assert.deepEqual(await second.requests(), [])
  const answer = await fetch(`${second.baseUrl}/chat/completions`, question('marker'))
  assert.match(await answer.text(), /"fake "/)
  await second.kill()
  await assert.rejects(second.requests())
})
