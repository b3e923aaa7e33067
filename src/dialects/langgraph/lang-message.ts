// Messages in the JSON of LangChain, as LangGraph clients read them. They are built from the events of
// a run and, for earlier turns, from stored messages, by the same functions, so that the two agree.

import { cutText } from '../../kit/cut-text.ts'
import type { JsonValue } from '../../journal/event.ts'
import { isRecord } from '../../kit/is-record.ts'

export type LangToolCall = {
  readonly id: string
  readonly name: string
  readonly args: JsonValue
  readonly type: 'tool_call'
}

export type LangMessage =
  | { readonly type: 'human'; readonly id: string; readonly content: string }
  | {
      readonly type: 'ai'
      readonly id: string
      readonly content: string
      readonly tool_calls: readonly LangToolCall[]
      readonly usage_metadata?: { input_tokens: number; output_tokens: number; total_tokens: number }
    }
  | {
      readonly type: 'tool'
      readonly id: string
      readonly content: string
      readonly tool_call_id: string
      readonly name?: string
      readonly status: 'success' | 'error'
    }

/** In UTF-16 units. The state of a thread repeats every message, so the output of a tool is cut there. */
const toolContentCharsMax = 32 * 1024

export function humanMessage(id: string, content: string): LangMessage {
  return { type: 'human', id, content }
}

/** LangChain wants an object as arguments. */
export function toolCallOf(callId: string, name: string, input: JsonValue | undefined): LangToolCall {
  const isObject = isRecord(input)
  return { id: callId, name, args: isObject ? input : input === undefined ? {} : { input }, type: 'tool_call' }
}

export function toolMessage(
  id: string,
  call: { callId: string; name: string | undefined },
  content: string,
  succeeded: boolean,
): LangMessage {
  const shown = content.length <= toolContentCharsMax ? content : `${cutText(content, toolContentCharsMax)[0]}…`
  return {
    type: 'tool',
    id,
    content: shown,
    tool_call_id: call.callId,
    ...(call.name === undefined ? {} : { name: call.name }),
    status: succeeded ? 'success' : 'error',
  }
}

/** In UTF-16 units of JSON. Every `values` frame has the whole list, so the list is bounded. */
const listCharsMax = 512 * 1024
const listMessagesMax = 500

/** The newest messages that fit, always at least one. */
export function boundedMessages(messages: readonly LangMessage[]): readonly LangMessage[] {
  let chars = 0
  let first = messages.length
  while (first > 0 && messages.length - first < listMessagesMax) {
    chars += JSON.stringify(messages[first - 1]).length
    if (chars > listCharsMax && first < messages.length) break
    first -= 1
  }
  return first === 0 ? messages : messages.slice(first)
}
