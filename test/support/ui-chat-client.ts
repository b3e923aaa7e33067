// The real chat class and transport of the AI SDK, without React: what `useChat` is made of. The
// state is a plain object. The server may be started again at another address: the client asks for
// the address with every request.

import type * as sdk7 from 'ai'
import { until } from './test-server.ts'
import { linesOfMessage } from './ui-message-reader.ts'

/** The functions that all versions have under the same name. */
export type UiSdk = Pick<
  typeof sdk7,
  'AbstractChat' | 'DefaultChatTransport' | 'isToolUIPart' | 'lastAssistantMessageIsCompleteWithToolCalls'
> &
  Partial<Pick<typeof sdk7, 'lastAssistantMessageIsCompleteWithApprovalResponses'>>

export type UiChatOptions = {
  baseUrl(): string
  /** `/v1/ui/chat`, or that of AI SDK 5. */
  path?: string
  user: string
  id: string
  /** Sent with every request. */
  body?: object
  /** Where the chat resumes, if it is not the route of its id. */
  resumeUrl?: string
  /** Executes the calls of the client's tools; what it throws is the error of the call. */
  onToolCall?: (call: { toolName: string; input: unknown }) => unknown
}

class PlainState {
  status: sdk7.ChatStatus = 'ready'
  error: Error | undefined = undefined
  messages: sdk7.UIMessage[] = []
  pushMessage = (message: sdk7.UIMessage) => {
    this.messages = [...this.messages, message]
  }
  popMessage = () => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: sdk7.UIMessage) => {
    this.messages = this.messages.with(index, structuredClone(message))
  }
  snapshot = <T>(value: T): T => structuredClone(value)
}

export function uiChat(
  sdk: UiSdk,
  { baseUrl, path = '/v1/ui/chat', user, id, body, resumeUrl, onToolCall }: UiChatOptions,
) {
  class PlainChat extends sdk.AbstractChat<sdk7.UIMessage> {
    posts = 0

    constructor() {
      super({
        id,
        state: new PlainState(),
        transport: new sdk.DefaultChatTransport({
          api: `http://server${path}`,
          body: { userId: user, ...body },
          prepareReconnectToStreamRequest: ({ id: chatId }) => ({
            api: resumeUrl ?? `http://server${path}/${encodeURIComponent(chatId)}/stream?userId=${user}`,
          }),
          fetch: async (input, init) => {
            if (init?.method === 'POST') this.posts += 1
            return await fetch(String(input).replace('http://server', baseUrl()), init)
          },
        }),
        sendAutomaticallyWhen: (given) =>
          sdk.lastAssistantMessageIsCompleteWithToolCalls(given) ||
          sdk.lastAssistantMessageIsCompleteWithApprovalResponses?.(given) === true,
        ...(onToolCall === undefined ? {} : { onToolCall: ({ toolCall }) => this.execute(toolCall) }),
      })
    }

    /** Not awaited by the SDK's handler: it would wait for itself. */
    private execute({ toolName, toolCallId, input }: { toolName: string; toolCallId: string; input: unknown }): void {
      const tool = toolName as never
      void Promise.resolve()
        .then(() => onToolCall?.({ toolName, input }))
        .then(
          (output) => this.addToolOutput({ tool, toolCallId, output }),
          (error: Error) => this.addToolOutput({ state: 'output-error', tool, toolCallId, errorText: error.message }),
        )
    }
  }
  return new PlainChat()
}

export type UiChat = ReturnType<typeof uiChat>

export const linesOfChat = (chat: UiChat) => linesOfMessage(chat.lastMessage)

/** Waits for a part of the last message that contains this text. */
export async function untilLine(chat: UiChat, text: string): Promise<void> {
  await until(`the text ${text}`, () => (linesOfChat(chat).some((line) => line.includes(text)) ? true : undefined))
}

export async function untilReady(chat: UiChat): Promise<void> {
  await until('the end of the stream', () => (chat.status === 'ready' ? true : undefined))
}
