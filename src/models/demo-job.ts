// Decides what the demo model does in a job. It follows a skill by fixed rules: it reads the
// uploaded files, asks the questions under the heading "## Questions", and fills in the output
// schema from the text of the input. So the included skills work offline, and other skills get
// an answer that fits their schema.

import type { JsonValue } from '../journal/event.ts'
import { fillSchema, type Facts } from './demo-form.ts'
import type { ModelMessage, ModelRequest } from './model.ts'
import { isRecord } from '../kit/is-record.ts'

const jobOpening = 'You carry out one job with the skill '
const filesMax = 3
/** Instructions and files are untrusted, so only this many characters are read, and only by linear-time code. */
const instructionCharsMax = 256 * 1024
const textCharsMax = 64 * 1024
const questionsMax = 50
const lineCharsMax = 2_000
const listMax = 100

type JobPlan = { reasoning: string; text: string; calls: { name: string; input: JsonValue }[] }

type Turn = { name: string; input: Record<string, JsonValue>; result: string }

/** Undefined if the request does not belong to a job. */
export function planDemoJob(request: ModelRequest): JobPlan | undefined {
  const whole = request.messages.find((message) => message.role === 'system')?.content ?? ''
  if (!whole.startsWith(jobOpening)) return undefined
  const instructions = whole.slice(0, instructionCharsMax)
  const said = request.messages.find((message) => message.role === 'user')?.content ?? ''
  const offered = new Set(request.tools.map((tool) => tool.name))
  const turns = turnsOf(request.messages)
  const input = jsonAfter(said, 'Input (JSON):')

  const wantedFiles = [...said.matchAll(/^- (.+) \(\d+ bytes\)$/gm)].map((match) => match[1] ?? '').slice(0, filesMax)
  const unread = wantedFiles.filter(
    (path) => !turns.some((turn) => turn.name === 'read_job_file' && turn.input['path'] === path),
  )
  if (unread.length > 0 && offered.has('read_job_file')) {
    return {
      reasoning: '',
      text: 'Reading what was uploaded.',
      calls: unread.map((path) => ({ name: 'read_job_file', input: { path } })),
    }
  }

  const asked = turns.filter((turn) => turn.name === 'ask_user')
  const next = questionsOf(instructions, input)[asked.length]
  if (next !== undefined && offered.has('ask_user'))
    return { reasoning: '', text: '', calls: [{ name: 'ask_user', input: next }] }

  const facts: Facts = {
    text: textOf(input, turns),
    input,
    parameter: jsonAfter(said, 'Parameters (JSON):'),
    answers: asked.map((turn) => ({ question: String(turn.input['question'] ?? ''), answer: answerText(turn.result) })),
  }
  const schema = schemaOf(whole)
  if (schema === undefined) return { reasoning: '', text: plainAnswer(facts), calls: [] }
  const value = fillSchema(schema, facts)
  const path = /`save_artifact`[^`]*`([\w./-]+)`/.exec(instructions)?.[1]
  if (path !== undefined && offered.has('save_artifact') && !turns.some((turn) => turn.name === 'save_artifact')) {
    return { reasoning: '', text: '', calls: [{ name: 'save_artifact', input: { path, content: asMarkdown(value) } }] }
  }
  return { reasoning: '', text: JSON.stringify(value), calls: [] }
}

function turnsOf(messages: readonly ModelMessage[]): Turn[] {
  const results = new Map(
    messages.flatMap((message) => (message.role === 'tool' ? [[message.callId, message.content] as const] : [])),
  )
  return messages.flatMap((message) =>
    message.role !== 'assistant'
      ? []
      : (message.toolCalls ?? []).map(({ callId, name, input }) => ({
          name,
          input: (isRecord(input) ? input : {}) as Turn['input'],
          result: results.get(callId) ?? '',
        })),
  )
}

/** The lines of the form `- kind: question [one | two]`; `[name]` means that the options are the list `name` of the input. */
function questionsOf(instructions: string, input: Record<string, JsonValue>): Record<string, JsonValue>[] {
  const questions: Record<string, JsonValue>[] = []
  let inSection = false
  for (const line of instructions.split('\n')) {
    if (questions.length === questionsMax) break
    if (inSection && /^#{1,2} /.test(line)) break
    if (/^## Questions[ \t]*$/.test(line)) inSection = true
    else if (inSection && line.length <= lineCharsMax) {
      const question = questionOf(line, input)
      if (question !== undefined) questions.push(question)
    }
  }
  return questions
}

function questionOf(line: string, input: Record<string, JsonValue>): Record<string, JsonValue> | undefined {
  const match = /^- (choose_one|confirm|fill_fields|open_text|risk_ack): (.+?)(?: \[([^\]]+)\])?$/.exec(line)
  if (match === null) return undefined
  const [, kind = '', question = '', list] = match
  const named = list === undefined ? undefined : input[list.trim()]
  const values = Array.isArray(named)
    ? named.slice(0, listMax).map(String)
    : (list?.split('|').map((value) => value.trim()) ?? [])
  const extra: Record<string, JsonValue> =
    values.length === 0 ? {} : kind === 'fill_fields' ? { fields: values } : { options: values }
  return { question, kind, ...extra }
}

function schemaOf(instructions: string): Record<string, JsonValue> | undefined {
  const at = instructions.lastIndexOf('fits this schema:')
  return at === -1 ? undefined : parsed(instructions.slice(at + 'fits this schema:'.length))
}

function jsonAfter(text: string, heading: string): Record<string, JsonValue> {
  const at = text.indexOf(heading)
  if (at === -1) return {}
  const line =
    text
      .slice(at + heading.length)
      .trimStart()
      .split('\n', 1)[0] ?? ''
  return parsed(line) ?? {}
}

function parsed(text: string): Record<string, JsonValue> | undefined {
  try {
    const value = JSON.parse(text.trim()) as JsonValue
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** The text of the files that were read, or the texts of the input if there are none. */
function textOf(input: Record<string, JsonValue>, turns: readonly Turn[]): string {
  const read = turns.filter((turn) => turn.name === 'read_job_file').map((turn) => turn.result)
  if (read.length > 0) return read.join('\n').slice(0, textCharsMax)
  return Object.values(input)
    .filter((value) => typeof value === 'string')
    .join('\n')
    .slice(0, textCharsMax)
}

/** If the question was auto-decided at its deadline, the reply is an object with the reason `user_no_reply`. */
function answerText(result: string): string {
  return parsed(result)?.['reason'] === 'user_no_reply' ? '(nobody replied in time)' : result.slice(0, lineCharsMax)
}

function plainAnswer({ text, answers }: Facts): string {
  const lines = answers.map(({ question, answer }) => `- ${question} ${answer}`)
  return [`The demo model read this job: “${text.slice(0, 400)}”.`, ...lines].join('\n')
}

function asMarkdown(value: JsonValue): string {
  const items = isRecord(value) ? value['items'] : undefined
  if (!Array.isArray(items)) return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\`\n`
  return items
    .map((item) => {
      const { task, owner, due } = item as Record<string, JsonValue>
      const who = [owner, due].filter((part) => typeof part === 'string').join(', ')
      return `- [ ] ${String(task)}${who === '' ? '' : ` (${who})`}\n`
    })
    .join('')
}
