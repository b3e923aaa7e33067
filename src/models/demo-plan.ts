// Decides what the demo model answers. Pure and deterministic: it looks for phrases in a fixed
// order, and text that one phrase has matched is not matched again, so that "remember that
// the time is five" only saves a note.

import { RE2JS } from 're2js'
import type { JsonValue } from '../journal/event.ts'
import { planDemoJob } from './demo-job.ts'
import { planDemoAnswerTo } from './demo-one-shot.ts'
import { planDemoSummary } from './demo-summary.ts'
import { configureAdvice, demoWords } from './demo-words.ts'
import type { Language, ToolReport, DemoSentences } from './demo-words.ts'
import type { ModelMessage, ModelRequest } from './model.ts'

export type DemoPlan = { reasoning: string; text: string; calls: { name: string; input: JsonValue }[] }

type Wanted = { name: string; input: JsonValue | undefined }

/** How much of a message is searched for calls by name, whose arguments may be long. Only linear-time code runs on it. */
const readCharsMax = 64 * 1024
/** How much of it is searched for all other phrases, whose patterns backtrack a little. */
const phraseCharsMax = 4_000
const callsMax = 16
/** How far behind the name of a tool its arguments may begin. Bounded because the pattern that looks for them backtracks. */
const openingCharsMax = 200
const heardCharsMax = 400
const contentCharsMax = 600
const countMax = 5_000
/** The query for the newest notes: the tool requires one that is not empty, and this one contains no word. */
const anyNote = ' '
const longSentences = 60

export function planDemoAnswer(request: ModelRequest): DemoPlan {
  const whole = request.messages.findLast((message) => message.role === 'user')?.content ?? ''
  // Only the beginning is read, because a very long message would block the event loop for all other users.
  const said = whole.slice(0, readCharsMax).trim()
  const summary = planDemoSummary(request)
  if (summary !== undefined) return { reasoning: '', text: summary, calls: [] }
  const job = planDemoJob(request)
  if (job !== undefined) return job
  const json = planDemoAnswerTo(request)
  if (json !== undefined) return { reasoning: '', text: json, calls: [] }
  const language: Language = /[\u3400-\u9fff\uf900-\ufaff]/.test(said) ? 'zh' : 'en'
  const words = demoWords[language]
  const results = resultsAtTheEnd(request.messages)
  if (results.length > 0) return { reasoning: '', text: summarise(results, words), calls: [] }

  const reasoning = /\bthink\b|思考|想一想|推理/i.test(said) ? words.thoughts(cut(said, heardCharsMax)) : ''
  const paragraphs: string[] = []
  if (!request.messages.some((message) => message.role === 'assistant')) paragraphs.push(words.introduction)

  const calls: DemoPlan['calls'] = []
  const wanted = wantedCalls(said)
  const offered = new Set(request.tools.map((tool) => tool.name))
  for (const { name, input } of wanted.calls) {
    if (!offered.has(name)) paragraphs.push(words.unavailable(name, configureAdvice(name, language)))
    else if (input === undefined) paragraphs.push(words.badArguments(name))
    else calls.push({ name, input })
  }
  if (calls.length > 0) paragraphs.push(words.calling(calls.map((call) => call.name)))
  if (wanted.calls.length === 0) {
    paragraphs.push(wanted.recipientMissing ? words.noRecipient : answerInWords(said, words))
  }
  return { reasoning, text: paragraphs.join('\n\n'), calls }
}

function answerInWords(whole: string, words: DemoSentences): string {
  const said = whole.slice(0, phraseCharsMax)
  if (said === '') return words.nothingSaid
  if (/^\W*help\W*$|\bwhat can you do\b|帮助|你会什么|你能做什么/i.test(said)) return words.help()
  if (/新年.*(?:祝福|祝愿|贺词)|(?:祝福|贺词).*新年|\bnew year\b/i.test(said)) return words.wish
  const target = /\bcount (?:up )?to (\d{1,9})|数到\s*(\d{1,9})/i.exec(said)
  if (target !== null) {
    const last = Math.min(Number(target[1] ?? target[2]), countMax)
    return Array.from({ length: last }, (_, index) => index + 1).join(' ')
  }
  if (/\blong\b|长文|很长|长一点/i.test(said)) {
    return Array.from({ length: longSentences }, (_, index) => `${index + 1}. ${words.long}`).join('\n')
  }
  if (/^\W*(?:hello|hi|hey)\b.{0,20}$|^(?:你好|您好|嗨)/i.test(said)) return words.greeting
  return words.heard(cut(said, heardCharsMax))
}

/** The calls that a text asks for, in the order of the rules below. */
function wantedCalls(said: string): { calls: Wanted[]; recipientMissing: boolean } {
  const calls: Wanted[] = []
  let rest = said
  const use = (match: RegExpExecArray, length = match[0].length): void => {
    rest = `${rest.slice(0, match.index)} ${rest.slice(match.index + length)}`
  }

  const byName = /(?:\b(?:use|call)\s+(?:the\s+)?tool\s+|(?:使用|调用|用)工具\s*)[`"'“”]?([\w.-]*\w)[`"'“”]?/i
  for (let match = byName.exec(rest); match !== null && calls.length < callsMax; match = byName.exec(rest)) {
    const after = rest.slice(match.index + match[0].length)
    const found = leadingJson(after)
    calls.push({ name: match[1] ?? '', input: found.input })
    use(match, match[0].length + found.length)
  }
  rest = rest.slice(0, phraseCharsMax)

  let recipientMissing = false
  if (/\bfeishu\b|飞书/i.test(rest) && /\bsend\b|\bmessage\b|发/i.test(rest)) {
    const message = readFeishu(rest)
    if (message === undefined) recipientMissing = true
    else calls.push({ name: 'send_feishu_message', input: message })
    rest = ''
  }

  const remember =
    /\b(?:remember|note)\s+that\s+([^.;\n]+)|\bremember:?\s+([^.;\n]+)|(?:记住|记下)[:\uff1a,\uff0c]?\s*([^。;\uff1b\n]+)/i.exec(
      rest,
    )
  if (remember !== null) {
    const text = (remember[1] ?? remember[2] ?? remember[3] ?? '').trim()
    if (text !== '') calls.push({ name: 'remember_note', input: { text } })
    use(remember)
  }

  const search = searchForm.exec(rest)
  if (search !== null) {
    const query = (search.groups?.['english'] ?? search.groups?.['chinese'] ?? '').trim()
    calls.push({ name: 'search_notes', input: { query: query === '' ? anyNote : query } })
    use(search)
  }

  const time =
    /\bwhat(?:['’]s| is)? (?:the )?(?:current )?(?:time|date|day)\b|\bcurrent (?:time|date)\b|\btime is it\b|^\W*time\W*$|几点|什么时间|现在.{0,3}时间|当前时间|今天.{0,3}(?:几号|星期几|日期)/i.exec(
      rest,
    )
  if (time !== null) {
    const zone = /\b(?:in|for)\s+([A-Z][A-Za-z]+\/[A-Za-z_]+)/.exec(rest)?.[1]
    calls.push({ name: 'current_time', input: zone === undefined ? {} : { timezone: zone } })
    use(time)
  }

  // The message asks for parallel calls without naming two tools, so we choose two that only read.
  if (calls.length < 2 && /\bparallel\b|并行|同时/i.test(said)) {
    if (!calls.some((call) => call.name === 'current_time')) calls.push({ name: 'current_time', input: {} })
    if (calls.length < 2) calls.push({ name: 'search_notes', input: { query: anyNote } })
  }
  return { calls, recipientMissing }
}

// The search text ends at the end of the sentence or where another request begins.
const searchForm = new RegExp(
  '\\b(?:(?:search|find in|look in|look through)\\s+(?:my\\s+)?notes?|what did i (?:note|ask you to remember))' +
    '(?:\\s+(?:for|about)\\s+(?<english>(?:(?!\\s+and\\s+(?:what|tell|the time)|\\s+in parallel)[^.;,?\\n])+))?' +
    '|(?:查|搜索|查找)(?:一下)?(?:我的)?笔记[:\uff1a,\uff0c]?\\s*' +
    '(?<chinese>(?:(?!和现在|和几点|并且|同时|并行)[^。;\uff1b,\uff0c?\uff1f\\n])*)',
  'i',
)

const recipient = '(?:o[unc]_[\\w-]+|[\\w.+-]+@[\\w-]+(?:\\.[\\w-]+)+|[\\w-]+)'

/** Every form has this word. The forms are compiled when a message has it, because compiling them takes longer than most answers. */
const feishuWord = /feishu|飞书/iu
let feishuForms: RE2JS[] | undefined

// Several of their parts can match the same spaces, which would backtrack, so they run in RE2, whose time is linear.
function compileFeishuForms(): RE2JS[] {
  return [
    linear(`\\bsend\\s+(?<message>.+?)\\s+to\\s+(?<id>${recipient})\\s+(?:on|via|in|through|by|with)\\s+feishu`, 'is'),
    linear(`\\bfeishu\\b.*?\\bto\\s+(?<id>${recipient})\\s*(?:saying|that says|:|,)?\\s+(?<message>.+)`, 'is'),
    linear(`飞书(?:消息|信息)?(?:给|到)\\s*(?<id>${recipient})\\s*(?:说)?[:\uff1a,\uff0c\\s]*(?<message>.+)`, 's'),
    linear(
      `给\\s*(?<id>${recipient})\\s*(?:发送|发)(?:一条|个|条)?飞书(?:消息|信息)?[:\uff1a,\uff0c说\\s]*(?<message>.+)`,
      's',
    ),
  ]
}

function linear(pattern: string, flags: 'is' | 's'): RE2JS {
  return RE2JS.compile(pattern, RE2JS.DOTALL | (flags === 'is' ? RE2JS.CASE_INSENSITIVE : 0))
}

function readFeishu(text: string): { recipientId: string; message: string } | undefined {
  if (!feishuWord.test(text)) return undefined
  feishuForms ??= compileFeishuForms()
  for (const form of feishuForms) {
    const found = form.matcher(text)
    if (!found.find()) continue
    const recipientId = found.group('id')
    const message = found
      .group('message')
      ?.trim()
      .replace(/^["'“‘]+|["'”’]+$/g, '')
    if (recipientId !== null && message) return { recipientId, message }
  }
  return undefined
}

/** The JSON object near the beginning: `{}` if there is none, undefined if it cannot be parsed. */
function leadingJson(text: string): { input: JsonValue | undefined; length: number } {
  const opening = /^[\s:\uff1a,\uff0c]*(?:with|参数)?[\s:\uff1a,\uff0c`]*\{/i.exec(text.slice(0, openingCharsMax))
  if (opening === null) return { input: {}, length: 0 }
  const start = opening[0].length - 1
  const end = endOfObject(text, start)
  if (end === -1) return { input: undefined, length: text.length }
  try {
    return { input: JSON.parse(text.slice(start, end)) as JsonValue, length: end }
  } catch {
    return { input: undefined, length: end }
  }
}

/** The index after the brace that closes the one at `start`, or -1. One pass; braces in strings do not count. */
function endOfObject(text: string, start: number): number {
  let depth = 0
  let inString = false
  for (let at = start; at < text.length; at += 1) {
    const char = text[at]
    if (inString) {
      if (char === '\\') at += 1
      else if (char === '"') inString = false
    } else if (char === '"') inString = true
    else if (char === '{') depth += 1
    else if (char === '}') {
      depth -= 1
      if (depth === 0) return at + 1
    }
  }
  return -1
}

type ToolMessage = Extract<ModelMessage, { role: 'tool' }>

function resultsAtTheEnd(messages: readonly ModelMessage[]): ToolMessage[] {
  const results: ToolMessage[] = []
  for (const message of messages.toReversed()) {
    if (message.role !== 'tool') break
    results.unshift(message)
  }
  return results
}

function summarise(results: ToolMessage[], words: DemoSentences): string {
  const lines = results.map((result) => words.tool(toolReportOf(result)))
  return [...lines, words.toolsDone].join('\n')
}

function toolReportOf({ name, content: whole, isError }: ToolMessage): ToolReport {
  const content = whole.slice(0, phraseCharsMax)
  const shown = cut(whole, contentCharsMax)
  if (!isError) return { name, content: shown, kind: 'succeeded' }
  // The outcome of a call is known only from the sentence that models get (see tool-outcome.ts).
  const kind = /^The tool failed\b/.test(content)
    ? 'failed'
    : /\b(?:did not allow|not allowed|denied|rejected|declined|expired)\b/i.test(content)
      ? 'denied'
      : /\boutcome\b.*\bunknown\b|\bunknown outcome\b/i.test(content)
        ? 'unknown'
        : 'failed'
  return { name, content: shown, kind }
}

function cut(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  return `${text.slice(0, charsMax).replace(/[\ud800-\udbff]$/, '')}…`
}
