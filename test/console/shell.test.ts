// The frame of the console and how it is served: caching, the content security policy, addresses, sign-in, theme,
// language, the command palette and shortcuts.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import Fastify from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { apiKeysSetting } from '../support/api-keys.ts'
import { ensureConsole } from '../../scripts/ensure-console.ts'
import { consoleRoutes } from '../../src/http/console/console-routes.ts'
import type { Server } from '../../src/http/routes.ts'
import { picture, seriousFindings, sharedConsoleBrowser } from '../support/console-page.ts'
import { sharedTestServers } from '../support/test-server.ts'

const key = 'a-key-for-the-console'
const [server, locked, without] = sharedTestServers(
  {},
  { POLYLOG_AUTH: 'required', POLYLOG_API_KEYS: apiKeysSetting({ ada: key }) },
  { POLYLOG_CONSOLE: 'off' },
)
const consoleBrowser = sharedConsoleBrowser()
const dist = join(import.meta.dirname, '../../console/dist')

before(ensureConsole)

describe('the files', () => {
  test('the page is public and never cached; its scripts are cached for ever and compressed', async () => {
    const page = await locked.call('GET', '/')
    assert.equal(page.status, 200)
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
    assert.equal(page.headers.get('cache-control'), 'no-cache')
    assert.match(
      page.headers.get('content-security-policy') ?? '',
      /default-src 'none'; script-src 'self'; style-src 'self'/,
    )
    assert.doesNotMatch(page.headers.get('content-security-policy') ?? '', /unsafe|https?:|\*/)
    const [, script = ''] = /<script [^>]*src="(\/assets\/[^"]+)"/.exec(page.text) ?? []
    assert.doesNotMatch(page.text, /<script(?![^>]*\bsrc=)|<style|\son\w+=/)
    const code = await fetch(new URL(script, locked.polylog.baseUrl), { headers: { 'accept-encoding': 'br' } })
    assert.equal(code.status, 200)
    assert.match(code.headers.get('content-type') ?? '', /javascript/)
    assert.equal(code.headers.get('cache-control'), 'public, max-age=31536000, immutable')
    assert.equal(code.headers.get('content-encoding'), 'br')
    assert.ok((await code.text()).length > 10_000)
  })

  test('every address of a page gives the page; other addresses stay JSON errors', async () => {
    const { text } = await server.call('GET', '/')
    for (const path of ['/chat', '/chat/some-conversation', '/runs/01J/raw', '/operations']) {
      const answer = await server.call('GET', path)
      assert.deepEqual([answer.status, answer.text], [200, text], path)
    }
    for (const path of [
      '/v1/nothing',
      '/nothing',
      '/assets/nothing.js',
      '/assets/../package.json',
      '/assets/',
      '/.stamp',
    ]) {
      const answer = await server.call('GET', path)
      assert.deepEqual([answer.status, answer.body.code], [404, 'route_not_found'], path)
    }
    const api = await server.call('GET', '/api/nothing')
    assert.deepEqual([api.status, api.body.error], [404, 'NOT_FOUND'])
  })

  test('an address that the file server refuses is no failure of the server', async () => {
    const plain = { 'accept-encoding': 'identity' }
    for (const path of ['%2e%2e%5cpackage.json', '%5c', '%00', 'a%00.js', '', '/x.js', 'a'.repeat(400)]) {
      for (const headers of [{}, plain]) {
        const answer = await server.call('GET', `/assets/${path}`, { headers })
        assert.deepEqual([answer.status, answer.body.code], [404, 'route_not_found'], path)
      }
    }
    assert.equal((await server.call('GET', '/chat', { headers: { range: 'bytes=99999999-' } })).status, 200)
    assert.equal((await server.call('GET', '/chat', { headers: { 'if-match': '"none"' } })).status, 404)
  })

  test('with the console off there is nothing at /', async () => {
    for (const path of ['/', '/chat']) assert.equal((await without.call('GET', path)).status, 404, path)
  })

  test('a server without a built console says what to do, and its API works', async () => {
    const bare: Server = Fastify().withTypeProvider<ZodTypeProvider>()
    await consoleRoutes(bare, { folder: join(tmpdir(), 'polylog-no-console') })
    bare.get('/v1/health', async () => ({ status: 'ok' }))
    const page = await bare.inject('/chat')
    assert.equal(page.statusCode, 503)
    assert.match(page.headers['content-type'] ?? '', /^text\/plain/)
    assert.match(page.body, /^The console is not built\. .*npm run build -- console/)
    assert.equal((await bare.inject('/v1/health')).statusCode, 200)
    await bare.close()
  })

  test('the first load is at most 150 KB gzipped', () => {
    const html = readFileSync(join(dist, 'index.html'), 'utf8')
    const eager = new Set([...html.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(([, path = '']) => path))
    // What the first page loads besides.
    for (const file of globSync('assets/chat-page-*.{js,css}', { cwd: dist })) addWithImports(file, eager)
    let bytes = gzipSync(html).length
    for (const file of eager) bytes += gzipSync(readFileSync(join(dist, file))).length
    assert.ok(eager.size >= 3, [...eager].join())
    assert.ok(bytes <= 150 * 1024, `${bytes} bytes in ${[...eager].join(', ')}`)
  })
})

function addWithImports(file: string, to: Set<string>): void {
  if (to.has(file)) return
  to.add(file)
  if (!file.endsWith('.js')) return
  for (const [, name = ''] of readFileSync(join(dist, file), 'utf8').matchAll(/from"\.\/([^"]+)"/g)) {
    addWithImports(`assets/${name}`, to)
  }
}

describe('in a browser', () => {
  test('theme, language, palette and shortcuts work by keyboard, and axe finds nothing serious', async (context) => {
    const opened = await consoleBrowser.open(context, server.polylog.baseUrl)
    if (opened === null) return
    const { page } = opened
    assert.deepEqual(await seriousFindings(page), [])
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('Go to Chat').waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    const palette = page.getByRole('dialog', { name: 'Commands' })
    await palette.getByRole('combobox').fill('lang')
    await picture(page, 'palette')
    await page.keyboard.press('Enter')
    await page.getByRole('navigation', { name: '页面' }).waitFor()
    assert.equal(await page.getAttribute('html', 'lang'), 'zh-CN')
    await page.getByRole('button', { name: '主题' }).click()
    assert.equal(await page.getAttribute('html', 'data-theme'), 'dark')
    assert.deepEqual(await seriousFindings(page), [])
    await page.reload()
    await page.getByRole('navigation', { name: '页面' }).waitFor()
    assert.equal(await page.getAttribute('html', 'data-theme'), 'dark')
  })

  test('an address that no page has says so and leads back', async (context) => {
    const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/chat`)
    if (opened === null) return
    const { page } = opened
    await page.evaluate("history.pushState(null, '', '/elsewhere')")
    await page.getByText('There is no such page.').waitFor()
    await page.getByRole('button', { name: 'Go to the chat' }).click()
    assert.equal(new URL(page.url()).pathname, '/chat')
  })
})
