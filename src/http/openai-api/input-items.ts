// What a response was given, as the items of the Responses API: the earlier messages and the question
// of its run, or the results that it goes on with.

import { eventPages } from '../../journal/event-pages.ts'
import type { Part } from '../../journal/part.ts'
import { valueText } from '../../dialects/interactions.ts'
import type { EarlierMessage } from '../../runs/start-request.ts'
import type { Services } from '../routes.ts'
import type { ResponsePlace } from './stored-response.ts'

export type InputItemView = Record<string, unknown> & { id: string; type: string }

export async function inputItems(
  services: Pick<Services, 'runs' | 'journal'>,
  { run, index }: ResponsePlace,
): Promise<InputItemView[]> {
  if (index > 0) return await resultItems(services, { run, index })
  const given = await services.runs.inputMessages(run)
  return given.flatMap((message, at) => itemsOf(message, `${run.id}_in_${at}`))
}

function itemsOf(message: EarlierMessage, id: string): InputItemView[] {
  switch (message.role) {
    case 'user':
      return [{ id: `msg_${id}`, type: 'message', role: 'user', status: 'completed', content: contentOf(message) }]
    case 'assistant': {
      const { content, toolCalls = [] } = message
      const text = { type: 'output_text', text: content, annotations: [], logprobs: [] }
      const said = { id: `msg_${id}`, type: 'message', role: 'assistant', status: 'completed', content: [text] }
      const calls = toolCalls.map(({ callId, name, input }, at) => ({
        id: `fc_${id}_${at}`,
        type: 'function_call',
        call_id: callId,
        name,
        arguments: JSON.stringify(input),
        status: 'completed',
      }))
      return content === '' ? calls : [said, ...calls]
    }
    case 'tool':
      return [
        {
          id: `fco_${id}`,
          type: 'function_call_output',
          call_id: message.callId,
          output: message.content,
          status: 'completed',
        },
      ]
  }
}

function contentOf({ content, parts }: Extract<EarlierMessage, { role: 'user' }>): Record<string, unknown>[] {
  if (parts === undefined) return [{ type: 'input_text', text: content }]
  return parts.map((part: Part) => {
    if (part.type === 'text') return { type: 'input_text', text: part.text }
    const { fileId, mediaType, name } = part
    if (mediaType.startsWith('image/')) return { type: 'input_image', file_id: fileId, detail: 'auto', image_url: null }
    return { type: 'input_file', file_id: fileId, filename: name ?? null }
  })
}

/** The answers that came between two responses of a run. */
async function resultItems(
  { journal }: Pick<Services, 'journal'>,
  { run, index }: ResponsePlace,
): Promise<InputItemView[]> {
  const items: InputItemView[] = []
  const kinds = new Map<string, string>()
  let responses = 0
  for await (const { events } of eventPages(journal, run.id)) {
    for (const event of events) {
      if (event.type === 'run.state' && event.data.to === 'waiting_user') responses += 1
      if (event.type === 'input.required') kinds.set(event.data.interactionId, event.data.kind)
      if (event.type !== 'input.resolved' || responses !== index) continue
      const { interactionId: id, resolution, response, reason = null } = event.data
      if (kinds.get(id) === 'confirmation') {
        const approve = resolution === 'confirmed'
        items.push({ id: `mcpa_${id}`, type: 'mcp_approval_response', approval_request_id: id, approve, reason })
      } else {
        const output = valueText(response) ?? reason ?? ''
        items.push({ id: `fco_${id}`, type: 'function_call_output', call_id: id, output, status: 'completed' })
      }
    }
  }
  return items
}
