import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Engine } from '../engines/engine.ts'
import { AppError } from '../errors/app-error.ts'
import type { FileReference } from '../journal/part.ts'
import type { ModelFacts, ModelMessage, ModelTable } from '../models/model.ts'
import { checkReadable, fileTokens, loadPromptFiles, readsKind, withFilesAsText } from './prompt-files.ts'

const image = (fileId: string, size: number): FileReference => ({ fileId, mediaType: 'image/png', size })
const asks = (...files: FileReference[]): ModelMessage => ({
  role: 'user',
  content: 'look',
  parts: [{ type: 'text', text: 'look' }, ...files.map((file) => ({ type: 'file' as const, ...file }))],
})
const answers: ModelMessage = { role: 'assistant', content: 'ok' }

async function load(
  messages: ModelMessage[],
  {
    bytesMax = 100,
    reads = true,
    texts = {},
  }: { bytesMax?: number; reads?: boolean; texts?: Record<string, string> } = {},
) {
  const asked: string[] = []
  const loaded = await loadPromptFiles(messages, {
    owner: 'ada',
    reads: () => reads,
    bytesMax,
    files: {
      async read(owner, id) {
        assert.equal(owner, 'ada')
        asked.push(id)
        if (id === 'gone') throw new AppError('file_not_found', 'gone')
        return { row: {} as never, bytes: Buffer.from(texts[id] ?? id) }
      },
    },
  })
  return { loaded, asked }
}

describe('the files of a prompt', () => {
  it('get their bytes, also those of tool results', async () => {
    const result: ModelMessage = {
      role: 'tool',
      callId: 'c',
      name: 't',
      content: 'a picture',
      isError: false,
      files: [image('b', 1), { fileId: 'c', mediaType: 'text/csv', size: 3 }],
    }
    const { loaded } = await load([asks(image('a', 1)), answers, result], { texts: { c: '1,2' } })

    assert.deepEqual(loaded[0], {
      role: 'user',
      content: 'look',
      parts: [
        { type: 'text', text: 'look' },
        { type: 'file', ...image('a', 1), data: Buffer.from('a') },
      ],
    })
    assert.equal(loaded[1], answers)
    assert.deepEqual(loaded[2], {
      ...result,
      content: 'a picture\n[text/csv, 3 B]\n1,2\n[end of the file]',
      files: [{ type: 'file', ...image('b', 1), data: Buffer.from('b') }],
    })
  })

  it('stay without bytes if they are gone, or if the model cannot read them', async () => {
    const gone = await load([asks(image('gone', 1))])
    assert.deepEqual(gone.loaded, [asks(image('gone', 1))])

    const blind = await load([asks(image('a', 1))], { reads: false })
    assert.deepEqual([blind.loaded, blind.asked], [[asks(image('a', 1))], []])
  })

  it('are left out from the oldest on if they are too large together, in large portions', async () => {
    const turns = Array.from({ length: 12 }, (_, index) => [asks(image(String(index), 20)), answers])
    const kept: (string | undefined)[] = []
    for (let count = 4; count <= 12; count += 1) {
      const { asked } = await load([...turns.slice(0, count).flat(), asks()])
      kept.push(asked[0])
      assert.ok(asked.length * 20 <= 100)
    }

    assert.deepEqual(kept, ['0', '0', '3', '3', '5', '5', '5', '8', '8'])
  })

  it('of the question and of what came after it are never left out', async () => {
    const { asked } = await load([asks(image('old', 60)), answers, asks(image('new', 90)), answers])

    assert.deepEqual(asked, ['new'])
  })

  it('of text are cut, between two characters', async () => {
    const text = `a${'ü'.repeat(300 * 1024)}`
    const file = { fileId: 't', mediaType: 'text/plain', size: Buffer.byteLength(text) }
    const { loaded } = await load([asks(file)], { bytesMax: 10 * 1024 * 1024, texts: { t: text } })
    const [message] = withFilesAsText(loaded)

    assert.match(
      message?.content ?? '',
      /^look\n\[text\/plain, 614\.4 KB\]\naü+\n\[cut: 614401 bytes in all\]\n\[end of the file\]$/,
    )
    assert.ok(!message?.content.includes('\uFFFD'))
  })

  it('count as tokens, by their kind', () => {
    assert.equal(fileTokens({ role: 'user', content: 'x' }), 0)
    assert.equal(fileTokens(asks(image('a', 5), image('b', 5_000_000))), 3200)
    assert.equal(fileTokens(asks({ fileId: 't', mediaType: 'text/plain', size: 3000 })), 1000)
  })
})

type CheckedSpec = Parameters<typeof checkReadable>[1]

describe('what a model can read', () => {
  const blind = { vision: false, pdf: null } as ModelFacts

  it('is what the table says; what is not known counts as yes', () => {
    assert.equal(readsKind('a/b', blind, 'image'), false)
    assert.equal(readsKind('a/b', blind, 'pdf'), true)
    assert.equal(readsKind('a/b', undefined, 'image'), true)
    assert.equal(readsKind('a/b', blind, 'text'), true)
    assert.equal(readsKind('a/b', undefined, 'audio'), false)
    assert.equal(readsKind('google/gemini', undefined, 'video'), true)
  })

  it('is checked before a run; a remote agent gets only text', () => {
    const modelTable = { find: (name: string) => (name === 'a/b' ? blind : undefined) } as unknown as ModelTable
    const check =
      (mediaType: string, kind: 'step' | 'turn', spec: CheckedSpec = { model: 'a/b', engine: 'remote' }) =>
      () =>
        checkReadable([{ type: 'file', fileId: 'f', mediaType, size: 1 }], spec, {
          modelTable,
          engines: { get: () => ({ kind }) as Engine },
        })

    assert.throws(check('image/png', 'step'), {
      code: 'model_cannot_read',
      message: /The model a\/b cannot read images/,
    })
    assert.doesNotThrow(check('application/pdf', 'step'))
    assert.throws(check('application/pdf', 'turn'), { code: 'model_cannot_read', message: /The engine remote/ })
    assert.doesNotThrow(check('text/csv', 'turn'))
    const chain = { model: 'a/seeing', fallbackModels: ['a/b'], engine: 'local' }
    assert.throws(check('image/png', 'step', chain), { message: /The model a\/b, which answers if/ })
    assert.doesNotThrow(check('image/png', 'step', { ...chain, fallbackModels: ['a/other'] }))
  })
})
