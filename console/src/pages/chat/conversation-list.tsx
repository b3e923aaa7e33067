// The conversations at the left of the chat: search, rename, delete. On phones it is a panel that opens over the chat.

import { type FormEvent, useDeferredValue, useId, useMemo, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { Conversation } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { problemOf } from '../../api/use-loaded.ts'
import { shellWords } from '../../app/words.ts'
import { liveState } from '../../feed/live-state.ts'
import { useWords } from '../../i18n/words.ts'
import { runWords } from '../../run/words.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { ConfirmDialog, Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Problem } from '../../ui/problem.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { useConversations } from './use-conversations.ts'
import { chatWords } from './words.ts'
import './conversation-list.css'

type ConversationListProps = { current: string | null; onChoose(): void }

export function ConversationList({ current, onChoose }: ConversationListProps) {
  const words = useWords(chatWords)
  const [search, setSearch] = useState('')
  const wanted = useDeferredValue(search.trim())
  const { items, hasMore, loadMore, isLoading, error, reload } = useConversations(wanted)
  const activity = useActivity()
  const [, navigate] = useLocation()
  const [dialog, setDialog] = useState<{ kind: 'rename' | 'delete'; conversation: Conversation } | null>(null)
  return (
    <aside className="conversations" aria-label={words.conversations}>
      <div className="conversations-head">
        <SearchField label={words.searchConversations} value={search} onChange={setSearch} />
        <IconButton
          icon="plus"
          look="plain"
          label={words.newChat}
          onClick={() => {
            navigate('/chat')
            onChoose()
          }}
        />
      </div>
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {isLoading ? <Spinner center /> : null}
      {!isLoading && error === undefined && items.length === 0 ? (
        <p className="conversations-empty faint">{wanted === '' ? words.noConversations : words.nothingFound}</p>
      ) : null}
      <nav className="conversations-list" aria-label={words.conversations}>
        {groupsOf(items).map(({ group, members }) => (
          <section key={group}>
            <h2 className="conversations-group">{words[group]}</h2>
            <ul>
              {members.map((conversation) => (
                <li key={conversation.id} className="conversation" data-current={conversation.id === current}>
                  <Link
                    href={`/chat/${encodeURIComponent(conversation.id)}`}
                    className="conversation-link cut"
                    aria-current={conversation.id === current ? 'true' : undefined}
                    title={conversation.title ?? words.untitled}
                    onClick={onChoose}
                  >
                    <bdi>{conversation.title ?? words.untitled}</bdi>
                    <Activity status={activity.get(conversation.id)} />
                  </Link>
                  <span className="conversation-actions">
                    <IconButton
                      icon="edit"
                      small
                      label={`${words.rename}: ${conversation.title ?? words.untitled}`}
                      onClick={() => setDialog({ kind: 'rename', conversation })}
                    />
                    <IconButton
                      icon="trash"
                      small
                      label={`${words.delete}: ${conversation.title ?? words.untitled}`}
                      onClick={() => setDialog({ kind: 'delete', conversation })}
                    />
                  </span>
                </li>
              ))}
            </ul>
          </section>
        ))}
        {hasMore ? (
          <Button small look="quiet" onClick={() => void loadMore()}>
            {words.moreConversations}
          </Button>
        ) : null}
      </nav>
      {dialog?.kind === 'rename' ? (
        <RenameDialog conversation={dialog.conversation} onClose={() => setDialog(null)} />
      ) : null}
      {dialog?.kind === 'delete' ? (
        <DeleteDialog
          conversation={dialog.conversation}
          onClose={() => setDialog(null)}
          onDeleted={() => dialog.conversation.id === current && navigate('/chat')}
        />
      ) : null}
    </aside>
  )
}

/** What is going on in each conversation; a decision that waits is more important than a run at work. */
function useActivity(): ReadonlyMap<string, 'running' | 'awaiting_input'> {
  const { runs } = liveState.use()
  return useMemo(() => {
    const found = new Map<string, 'running' | 'awaiting_input'>()
    for (const { conversationId, status } of runs.values()) {
      if (conversationId === null || found.get(conversationId) === 'awaiting_input') continue
      found.set(conversationId, status === 'awaiting_input' ? status : 'running')
    }
    return found
  }, [runs])
}

function Activity({ status }: { status: 'running' | 'awaiting_input' | undefined }) {
  const words = useWords(runWords)
  if (status === undefined) return null
  return (
    <span className="conversation-activity" data-status={status} title={words[status]}>
      <span className="visually-hidden">{words[status]}</span>
    </span>
  )
}

type Group = 'today' | 'yesterday' | 'earlier'

function groupsOf(items: readonly Conversation[]): { group: Group; members: Conversation[] }[] {
  const midnight = new Date().setHours(0, 0, 0, 0)
  const day = 24 * 3600 * 1000
  const groups = new Map<Group, Conversation[]>()
  for (const item of items) {
    const group = item.updatedAtMs >= midnight ? 'today' : item.updatedAtMs >= midnight - day ? 'yesterday' : 'earlier'
    groups.set(group, [...(groups.get(group) ?? []), item])
  }
  return [...groups].map(([group, members]) => ({ group, members }))
}

export function RenameDialog({ conversation, onClose }: { conversation: Conversation; onClose(): void }) {
  const words = useWords(chatWords)
  const shell = useWords(shellWords)
  const api = useApi()
  const form = useId()
  const [title, setTitle] = useState(conversation.title ?? '')
  const save = async (event: FormEvent) => {
    event.preventDefault()
    try {
      await api.client.conversations.update(conversation.id, { title: title.trim() === '' ? null : title.trim() })
      onClose()
    } catch (error) {
      showProblem(shell.failed, problemOf(error))
    }
  }
  return (
    <Dialog
      title={words.rename}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{shell.cancel}</Button>
          <Button look="primary" type="submit" form={form}>
            {shell.save}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={(event) => void save(event)}>
        <TextField
          label={words.title}
          autoFocus
          maxLength={500}
          value={title}
          onChange={(event) => setTitle(event.target.value)}
        />
      </form>
    </Dialog>
  )
}

type DeleteDialogProps = { conversation: Conversation; onClose(): void; onDeleted(): void }

function DeleteDialog({ conversation, onClose, onDeleted }: DeleteDialogProps) {
  const words = useWords(chatWords)
  const { client } = useApi()
  return (
    <ConfirmDialog
      title={words.deleteTitle}
      action={words.delete}
      onConfirm={async () => {
        await client.conversations.delete(conversation.id)
        onDeleted()
      }}
      onClose={onClose}
    >
      {words.deleteHelp(conversation.title ?? words.untitled)}
    </ConfirmDialog>
  )
}
