// What a model is given of the files of a conversation: of the question, of earlier turns, of tool
// results, when a question is answered again, and after a crash.

import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { withPictureTool } from '../support/picture-server.ts'
import { dataUrl, pdf, pngOf } from '../support/sample-files.ts'
import {
  calls,
  endOf,
  hangsAfter,
  type Json,
  messagesOf,
  runIdOf,
  says,
  sharedTestServer,
  someone,
  startTestServerProcess,
} from '../support/test-server.ts'

/** A table in which one model can read no files. */
function modelTable(): string {
  const file = join(mkdtempSync(join(tmpdir(), 'polylog-table-')), 'models.json')
  const blind = { vision: false, pdf: false }
  writeFileSync(file, JSON.stringify({ asOf: '2026-11-16', models: { 'openai/text-only': blind } }))
  return file
}

const server = sharedTestServer({ POLYLOG_MODEL_TABLE: modelTable(), ...withPictureTool() })

const image = (shade: number) => ({ type: 'image_url', image_url: { url: dataUrl('image/png', pngOf(shade)) } })
const asking = (text: string, ...parts: Json[]) => ({
  messages: [{ role: 'user', content: [{ type: 'text', text }, ...parts] }],
})

/** The content of the last message of the user in the newest request with this marker. */
async function lastContent(marker: string): Promise<Json> {
  const requests = await server.asked(marker)
  return messagesOf(requests.at(-1)).findLast(({ role }) => role === 'user')?.content
}

describe('the model', () => {
  test('gets an image and a PDF of the question in their places', async () => {
    const user = someone()
    const document = { type: 'file', file: { filename: 'a.pdf', file_data: dataUrl('application/pdf', pdf) } }
    const frames = await server.chatToEnd(user, asking(user, image(1), { type: 'text', text: 'and' }, document))

    assert.equal(endOf(frames).status, 'succeeded')
    assert.deepEqual(await lastContent(user), [
      { type: 'text', text: user },
      image(1),
      { type: 'text', text: 'and' },
      { type: 'file', file: { filename: 'a.pdf', file_data: dataUrl('application/pdf', pdf) } },
    ])
  })

  test('gets the files of earlier turns again', async () => {
    const user = someone()
    await server.chatToEnd(user, { ...asking(`${user} one`, image(1)), conversationId: 'c' })
    await server.chatToEnd(user, { input: `${user} two`, conversationId: 'c' })

    const [first] = messagesOf((await server.asked(`${user} two`)).at(-1)).filter(({ role }) => role === 'user')
    assert.deepEqual(first?.content, [{ type: 'text', text: `${user} one` }, image(1)])
  })

  test('gets the file again when the question is answered again', async () => {
    const user = someone()
    await server.chatToEnd(user, { ...asking(user, image(4)), conversationId: 'c' })
    const again = await server.call('POST', '/api/get_chat_response', {
      user,
      body: { client_id: user, conversation_id: 'c', is_refresh: true },
    })

    assert.equal(again.status, 200, again.text)
    const requests = await server.asked(user)
    assert.equal(requests.length, 2)
    for (const request of requests) {
      const asked = messagesOf(request).findLast(({ role }) => role === 'user')
      assert.deepEqual(asked?.content[1], image(4))
    }
  })

  test('gets the files of a tool result after the result, since its API has only text there', async () => {
    const user = someone()
    await server.provider.script([calls(['take_picture', {}]), says('Nice.')], user)
    const frames = await server.chatToEnd(user, { input: user, conversationId: 'c' })

    assert.equal(endOf(frames).status, 'succeeded', JSON.stringify(endOf(frames)))
    const messages = messagesOf((await server.asked('Files of the result')).at(-1))
    const result = messages.findIndex(({ role }) => role === 'tool')
    assert.match(
      messages[result]?.content,
      /^A picture:\n\[image\/png, \d+ B\]\n\[report\.pdf, application\/pdf, \d+ B\]\n\[a\.bin, application\/octet-stream, 3 B\]\n\[link: more, https:\/\/pictures\.example\/more\]\n\[a file of the result is left out: /,
    )
    assert.deepEqual(
      messages[result + 1]?.content.map((part: Json) => part.type),
      ['text', 'image_url', 'file'],
    )
    assert.deepEqual(messages[result + 1]?.content[1], image(7))
    const stored = (await server.call('GET', '/v1/agent/messages?conversationId=c', { user })).body as unknown as Json[]
    const parts = stored.find(({ role }) => role === 'tool')?.parts as Json[]
    assert.deepEqual(
      parts.map(({ type, mediaType, name }) => [type, mediaType, name]),
      [
        ['text', undefined, undefined],
        ['file', 'image/png', undefined],
        ['file', 'application/pdf', 'report.pdf'],
      ],
    )
    const bytes = await fetch(new URL(`/v1/files/${parts[1]?.fileId}?userId=${user}`, server.polylog.baseUrl))
    assert.ok(Buffer.from(await bytes.arrayBuffer()).equals(pngOf(7)))
    const kept = await server.call('DELETE', `/v1/files/${parts[1]?.fileId}`, { user })
    assert.equal(kept.body.code, 'file_in_use')
  })

  test('that cannot read a file refuses the question before the run, and gets text files as text', async () => {
    const user = someone()
    for (const part of [image(1), { type: 'file', data: dataUrl('application/pdf', pdf) }]) {
      const answer = await server.call('POST', '/v1/agent/chat', {
        user,
        body: { userId: user, ...asking(user, part), model: 'openai/text-only' },
      })
      assert.deepEqual([answer.status, answer.body.code], [400, 'model_cannot_read'], answer.text)
      assert.match(answer.body.message, /openai\/text-only cannot read (?:images|PDF files)/)
    }
    assert.deepEqual((await server.call('GET', '/v1/agent/runs', { user })).body, [])
    const text = { type: 'file', filename: 'a.md', data: dataUrl('text/markdown', Buffer.from('# Title')) }
    const frames = await server.chatToEnd(user, { ...asking(user, text), model: 'openai/text-only' })
    assert.equal(endOf(frames).status, 'succeeded')
    assert.deepEqual((await lastContent(user))[1], {
      type: 'text',
      text: '[a.md, text/markdown, 7 B]\n# Title\n[end of the file]',
    })
  })

  test('that cannot read a file of an earlier turn gets its name', async () => {
    const user = someone()
    await server.chatToEnd(user, { ...asking(`${user} one`, image(1)), conversationId: 'c' })
    const model = 'openai/text-only'
    const frames = await server.chatToEnd(user, { input: `${user} two`, conversationId: 'c', model })

    assert.equal(endOf(frames).status, 'succeeded', JSON.stringify(endOf(frames)))
    const [first] = messagesOf((await server.asked(`${user} two`)).at(-1)).filter(({ role }) => role === 'user')
    assert.deepEqual(first?.content[1], { type: 'text', text: `[image/png, ${pngOf(1).length} B]` })
    const refused = await server.call('POST', '/api/get_chat_response', {
      user,
      body: { client_id: user, conversation_id: 'c', is_refresh: true, model },
    })
    assert.equal(refused.status, 200, 'the question that is answered again has no file')
  })

  test('is not asked for sound, unless its provider takes it', async () => {
    const user = someone()
    const sound = {
      type: 'input_audio',
      input_audio: { data: Buffer.from('RIFF\0\0\0\0WAVEfmt ').toString('base64'), format: 'wav' },
    }
    const answer = await server.call('POST', '/v1/agent/chat', { user, body: { userId: user, ...asking(user, sound) } })

    assert.equal(answer.body.code, 'model_cannot_read')
  })
})

test('bytes are neither in the journal nor in a stream nor in the log', async () => {
  const user = someone()
  const stream = await server.chat(user, asking(user, image(200)))
  await stream.ended()
  const timeline = await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}/timeline`, { user })
  const base64 = pngOf(200).toString('base64')

  assert.match(timeline.text, /"mediaType":"image\/png"/)
  for (const shown of [timeline.text, JSON.stringify(stream.frames), server.polylog.log()])
    assert.ok(!shown.includes(base64.slice(20, 60)))
})

test('a run that was killed while the model answered asks again with the same files', async () => {
  const mortal = await startTestServerProcess()
  try {
    const user = someone()
    await mortal.provider.script([hangsAfter('I see '), says('I see a pixel.')], user)
    const stream = await mortal.chat(user, { ...asking(user, image(5)), conversationId: 'c' })
    await mortal.askedTimes(user, 1)
    const runId = runIdOf(stream)
    await mortal.polylog.kill()
    const next = await mortal.restart()
    try {
      await next.reaches(user, runId, 'succeeded')
      const requests = await next.asked(user)
      assert.equal(requests.length, 2)
      for (const request of requests) assert.deepEqual(messagesOf(request).at(-1)?.content[1], image(5))
    } finally {
      await next.close()
    }
  } finally {
    await mortal.close()
  }
})
