// The parameters of the A2A methods. Messages of 1.0 and 0.3 are read by one schema: a part says by
// its fields what it is, in both versions.

import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import { jsonValue } from '../json-value.ts'
import { describeIssues, summarise } from '../validation-sentence.ts'
import { isRecord } from '../../kit/is-record.ts'

const id = z.string().min(1).max(200)
/** An empty text means "not given" in the JSON of 1.0. */
const optionalText = z
  .string()
  .max(200)
  .nullish()
  .transform((text) => (text == null || text === '' ? undefined : text))
const historyLength = z.number().int().min(0).nullish()

const part = z
  .object({
    kind: z.string().optional(),
    text: z.string().nullish(),
    data: jsonValue.optional(),
    raw: z.string().nullish(),
    url: z.string().nullish(),
    filename: z.string().max(500).nullish(),
    mediaType: z.string().max(200).nullish(),
    file: z
      .object({
        bytes: z.string().nullish(),
        uri: z.string().nullish(),
        name: z.string().max(500).nullish(),
        mimeType: z.string().max(200).nullish(),
      })
      .nullish(),
  })
  .loose()

const message = z
  .object({
    messageId: id,
    contextId: optionalText,
    taskId: optionalText,
    role: z.enum(['ROLE_USER', 'user'], { error: 'must be the role of a user: ROLE_USER, or "user" in 0.3' }),
    parts: z.array(part).min(1).max(1000),
  })
  .loose()

const configuration = z
  .object({
    acceptedOutputModes: z.array(z.string().max(200)).max(100).nullish(),
    historyLength,
    blocking: z.boolean().nullish(),
    returnImmediately: z.boolean().nullish(),
    pushNotificationConfig: z.unknown().optional(),
    taskPushNotificationConfig: z.unknown().optional(),
  })
  .loose()

export const sendParams = z.object({ message, configuration: configuration.nullish() }).loose()

export const taskParams = z.object({ id, historyLength }).loose()

export const listParams = z
  .object({
    contextId: optionalText,
    status: optionalText,
    pageSize: z.number().int().min(1).max(100).nullish(),
    pageToken: optionalText,
    historyLength,
    includeArtifacts: z.boolean().nullish(),
    statusTimestampAfter: z.string().max(100).nullish(),
  })
  .loose()

export type MessageOfClient = z.infer<typeof message>
type PartOfClient = MessageOfClient['parts'][number]
export type SendParams = z.infer<typeof sendParams>

const issuesMax = 20

/** Throws `invalid_request` with a sentence for each field that is wrong. */
export function parseParams<Schema extends z.ZodType>(schema: Schema, params: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(params)
  if (parsed.success) return parsed.data
  const found = parsed.error.issues
  const raw = found.slice(0, issuesMax).map(({ code, path, message: problem, ...rest }) => ({
    keyword: code,
    instancePath: `/${path.join('/')}`,
    message: problem,
    params: rest,
  }))
  const issues = describeIssues(raw, 'body', params)
  throw new AppError('invalid_request', summarise(issues, found.length), { details: { issues } })
}

/** The parts of the message in the shapes that `readContent` knows. Data is shown to the model as JSON. */
export function contentOfMessage({ parts }: Pick<MessageOfClient, 'parts'>): unknown[] {
  const content: unknown[] = []
  let afterText = false
  for (const given of parts) {
    const text = given.text ?? (given.data === undefined ? undefined : JSON.stringify(given.data))
    if (text === undefined) content.push(fileContent(given))
    else content.push({ type: 'text', text: afterText ? `\n${text}` : text })
    afterText = text !== undefined
  }
  return content
}

function fileContent({ raw, url, file, filename, mediaType }: PartOfClient): unknown {
  const data = raw ?? file?.bytes ?? undefined
  const source = data === undefined ? { url: url ?? file?.uri } : { data }
  return { type: 'file', ...source, mediaType: mediaType ?? file?.mimeType, name: filename ?? file?.name }
}

/** The text parts of an answer to a question. */
export function textOfMessage({ parts }: Pick<MessageOfClient, 'parts'>): string {
  const text = parts.flatMap((given) => given.text ?? []).join('\n')
  if (text.trim() === '') throw emptyMessage()
  return text
}

export function emptyMessage(): AppError {
  return new AppError('messages_or_prompt_required', 'The message is empty; send some text.')
}

/** The objects in the data parts of a message. */
export function dataOfMessage({ parts }: Pick<MessageOfClient, 'parts'>): Record<string, JsonValue>[] {
  return parts.flatMap(({ data }) => (isRecord(data) ? [data as Record<string, JsonValue>] : []))
}

/** Throws if the client takes no kind of content that the server can send, or wants to be called back. */
export function checkConfiguration(given: SendParams['configuration']): void {
  const push = given?.pushNotificationConfig ?? given?.taskPushNotificationConfig
  if (push != null) {
    throw new AppError(
      'push_notifications_unsupported',
      'This server sends no push notifications; stream the task, subscribe to it, or ask for it again.',
    )
  }
  const modes = given?.acceptedOutputModes ?? []
  if (modes.length > 0 && !modes.some((mode) => /^(?:\*\/\*|text(?:\/\S+)?)$/.test(mode.trim()))) {
    throw new AppError('output_modes_unsupported', 'Answers are text; add text/plain to acceptedOutputModes.')
  }
}

/** Whether the reply comes at once, with a task that still works. */
export function returnsAtOnce(given: SendParams['configuration']): boolean {
  return given?.returnImmediately === true || given?.blocking === false
}
