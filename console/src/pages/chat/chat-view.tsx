// One conversation, or a new one: its turns, what waits in the queue, and the field to write in.

import { useCallback, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { currentApi, useApi } from '../../api/api.ts'
import { problemOf } from '../../api/use-loaded.ts'
import { useCommands } from '../../app/palette.tsx'
import { useShortcuts } from '../../app/shortcuts.ts'
import { useWords } from '../../i18n/words.ts'
import { startRun } from '../../run/use-run.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { chatChoice } from './chat-choice.ts'
import { Composer } from './composer.tsx'
import { changeDraft, clearDraft, type Draft, nameDraft, useDraft } from './drafts.ts'
import { addPending, changePending, pendingMessages, removePending } from './pending.ts'
import { type QueuedMessage, QueuedMessages } from './queued-messages.tsx'
import { ChatTurn, Question } from './turn.tsx'
import { queuedRuns, turnsOf } from './turns.ts'
import { useConversation } from './use-conversation.ts'
import { useStickyScroll } from './use-sticky-scroll.ts'
import { Welcome } from './welcome.tsx'
import { chatWords } from './words.ts'
import './chat-view.css'

/** The addresses of a conversation that has not begun. */
const newChatPaths = ['/', '/chat']

export function ChatView({ conversationId }: { conversationId: string | null }) {
  const words = useWords(chatWords)
  const api = useApi()
  const [, navigate] = useLocation()
  const { messages, open, hasEarlier, loadEarlier, isLoaded, error, reload } = useConversation(conversationId)
  const pending = pendingMessages.use().filter((message) => message.conversationId === conversationId)
  const draft = useDraft(conversationId)
  /** The id is null until the server has named the run. */
  const [stopping, setStopping] = useState<{ runId: string | null } | null>(null)
  const { scroller, content, isAtEnd, toEnd } = useStickyScroll()
  const field = useRef<HTMLTextAreaElement>(null)

  const waiting = queuedRuns(open)
  const turns = useMemo(() => turnsOf(messages, open), [messages, open])
  const waitingIds = new Set(waiting.map(({ runId }) => runId))
  const shown = turns.filter(({ runId }) => runId === null || !waitingIds.has(runId))
  const queued: QueuedMessage[] = turns.flatMap(({ runId, question }) =>
    runId !== null && question !== null && waitingIds.has(runId) ? [{ runId, question }] : [],
  )
  const active = open.find(({ runId }) => !waitingIds.has(runId)) ?? null
  const isBusy = active !== null || pending.length > 0
  const lastRun = shown.at(-1)?.runId ?? null

  const send = async ({ text, files }: Pick<Draft, 'text' | 'files'>) => {
    const { agentId, model } = chatChoice.get()
    const content = [
      ...(text === '' ? [] : [{ type: 'text', text }]),
      ...files.map((file) => ({ type: 'file', fileId: file.id })),
    ]
    // A conversation begins with its first message; the next one waits until the server has named it.
    const [first] = pending
    const start = async () => {
      const known = conversationId ?? (await first?.started)?.conversationId
      return startRun(api, {
        ...(files.length === 0 ? { input: text } : { messages: [{ role: 'user' as const, content }] }),
        ...(known === undefined ? {} : { conversationId: known }),
        ...(agentId === '' ? {} : { agentId }),
        ...(model === '' ? {} : { model }),
      })
    }
    const starting = start()
    const id = addPending({ conversationId, text, files, started: starting.catch(() => null) })
    toEnd()
    try {
      const started = await starting
      changePending(id, started)
      // The person may look at another page by now, or be another user.
      if (conversationId === null && api === currentApi() && newChatPaths.includes(location.pathname)) {
        nameDraft(started.conversationId)
        navigate(`/chat/${encodeURIComponent(started.conversationId)}`)
      }
      reload()
    } catch (failure) {
      removePending((message) => message.id === id)
      if (api === currentApi()) changeDraft(conversationId, (old) => withUnsent(old, text, files))
      showProblem(words.sendFailed, problemOf(failure))
    }
  }
  const isAnsweringAgain = useRef(false)
  const answerAgain = async () => {
    // A double click asks once.
    if (isAnsweringAgain.current) return
    isAnsweringAgain.current = true
    const { agentId, model } = chatChoice.get()
    try {
      await startRun(api, {
        regenerate: true,
        conversationId: conversationId ?? '',
        ...(agentId === '' ? {} : { agentId }),
        ...(model === '' ? {} : { model }),
      })
      reload()
    } catch (failure) {
      showProblem(words.regenerate, problemOf(failure))
    } finally {
      isAnsweringAgain.current = false
    }
  }
  const regenerate = useCallback(() => void answerAgain(), [api, conversationId, reload])
  const stop = async () => {
    const [first] = pending
    setStopping({ runId: active?.runId ?? first?.runId ?? null })
    try {
      const runId = active?.runId ?? (await first?.started)?.runId ?? null
      if (runId === null) return
      setStopping({ runId })
      await api.client.cancel(runId)
    } catch (failure) {
      showProblem(words.stopFailed, problemOf(failure))
    } finally {
      setStopping(null)
      reload()
    }
  }
  useShortcuts([{ keys: 'n', label: words.newChat, run: () => navigate('/chat') }])
  useCommands([{ id: 'new chat', label: words.newChat, icon: 'plus', keys: 'n', run: () => navigate('/chat') }])

  const isNew = conversationId === null && pending.length === 0
  return (
    <div className="chat-view">
      {/* A region that scrolls must be reachable by keyboard. */}
      <div ref={scroller} className="chat-scroll" tabIndex={0} role="region" aria-label={words.messages}>
        <div ref={content} className="chat-content">
          {isNew ? <Welcome field={field} onAsk={(text) => void send({ text, files: [] })} /> : null}
          {conversationId !== null && !isLoaded && error === undefined && pending.length === 0 ? (
            <Spinner center />
          ) : null}
          {error === undefined ? null : <Problem error={error} onRetry={reload} />}
          {hasEarlier ? (
            <Button small look="quiet" icon="up" onClick={() => void loadEarlier()}>
              {words.earlierMessages}
            </Button>
          ) : null}
          {shown.map((turn) => (
            <ChatTurn
              key={turn.key}
              turn={turn}
              isLast={turn.runId === lastRun && !isBusy}
              isStopping={turn.runId !== null && turn.runId === stopping?.runId}
              onEnd={reload}
              onRegenerate={regenerate}
            />
          ))}
          {pending
            .filter(({ runId }) => runId === null || !turns.some((turn) => turn.runId === runId))
            .map(({ id, text, files }) => (
              <article key={id} className="turn">
                <Question
                  text={text}
                  parts={files.map((file) => ({
                    type: 'file',
                    fileId: file.id,
                    mediaType: file.mediaType,
                    name: file.filename,
                    size: file.size,
                  }))}
                />
                <div className="answer-waiting soft">
                  <Spinner label={words.working} /> {words.working}
                </div>
              </article>
            ))}
        </div>
      </div>
      <div className="chat-foot">
        {isAtEnd ? null : (
          <div className="chat-to-end">
            <IconButton icon="down" look="plain" label={words.toNewest} onClick={toEnd} />
          </div>
        )}
        <div className="chat-foot-inside">
          <QueuedMessages queued={queued} field={field} onChange={reload} />
          <Composer
            field={field}
            draft={draft}
            onDraft={(change) => changeDraft(conversationId, change)}
            conversationId={conversationId}
            isBusy={isBusy}
            isStopping={stopping !== null}
            onSend={(message) => {
              clearDraft(conversationId)
              void send(message)
            }}
            onStop={() => void stop()}
          />
        </div>
      </div>
    </div>
  )
}

/** Puts a message that could not be sent before what was written meanwhile. */
function withUnsent(draft: Draft, text: string, files: Draft['files']): Draft {
  const sent = new Set(files.map(({ id }) => id))
  return {
    ...draft,
    text: [text, draft.text].filter((part) => part !== '').join('\n\n'),
    files: [...files, ...draft.files.filter(({ id }) => !sent.has(id))],
  }
}
