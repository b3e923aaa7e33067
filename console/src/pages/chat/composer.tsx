// The field to write in: files, agent and model, send or queue, and stop while an answer is on its way. Enter sends,
// Shift+Enter starts a new line.

import { type ClipboardEvent, type DragEvent, type KeyboardEvent, type MouseEvent, type RefObject, useRef } from 'react'
import { useApi } from '../../api/api.ts'
import { problemOf } from '../../api/use-loaded.ts'
import { useShortcuts } from '../../app/shortcuts.ts'
import { useWords } from '../../i18n/words.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { AgentAndModel } from './agent-and-model.tsx'
import { isByKeyboard } from '../../ui/use-kept-focus.ts'
import { beginUpload, type Draft, endUpload } from './drafts.ts'
import { chatWords } from './words.ts'
import './composer.css'

type ComposerProps = {
  field: RefObject<HTMLTextAreaElement | null>
  /** Null: the conversation has not begun. */
  conversationId: string | null
  draft: Draft
  onDraft(change: (draft: Draft) => Draft): void
  isBusy: boolean
  isStopping: boolean
  onSend(draft: Draft): void
  onStop(): void
}

export function Composer({ field, conversationId, draft, onDraft, isBusy, isStopping, onSend, onStop }: ComposerProps) {
  const words = useWords(chatWords)
  const api = useApi()
  const chooser = useRef<HTMLInputElement>(null)
  const canSend = (draft.text.trim() !== '' || draft.files.length > 0) && draft.uploads.length === 0

  useShortcuts([{ keys: '/', label: words.message, run: () => field.current?.focus() }])

  const upload = async (file: File) => {
    const id = beginUpload(conversationId, file.name)
    try {
      endUpload(id, await api.client.files.upload(file, { name: file.name }))
    } catch (error) {
      endUpload(id)
      showProblem(words.uploadFailed(file.name), problemOf(error))
    }
  }
  const uploadAll = (files: FileList | null) => {
    for (const file of files ?? []) void upload(file)
  }
  const send = () => {
    if (canSend) onSend({ ...draft, text: draft.text.trim() })
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && isBusy && !isStopping) {
      event.preventDefault()
      onStop()
    }
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  /** The button that was pressed goes away or is disabled. */
  const toField = (event: MouseEvent) => {
    if (isByKeyboard(event)) field.current?.focus()
  }
  return (
    <div
      className="composer"
      onDragOver={(event: DragEvent) => event.preventDefault()}
      onDrop={(event: DragEvent) => {
        event.preventDefault()
        uploadAll(event.dataTransfer.files)
      }}
    >
      {draft.files.length + draft.uploads.length === 0 ? null : (
        <ul className="composer-files">
          {draft.files.map((file) => (
            <li key={file.id} className="composer-file">
              <Icon name="file" />
              <bdi className="cut">{file.filename}</bdi>
              <IconButton
                icon="close"
                small
                label={words.removeFile(file.filename)}
                onClick={() => onDraft((old) => ({ ...old, files: old.files.filter(({ id }) => id !== file.id) }))}
              />
            </li>
          ))}
          {draft.uploads.map(({ id, name }) => (
            <li key={id} className="composer-file">
              <Spinner label={words.uploading} />
              <bdi className="cut">{name}</bdi>
            </li>
          ))}
        </ul>
      )}
      <textarea
        ref={field}
        className="composer-text"
        rows={1}
        dir="auto"
        aria-label={words.message}
        placeholder={isBusy ? words.placeholderBusy : words.placeholder}
        value={draft.text}
        onChange={(event) => {
          const { value } = event.target
          onDraft((old) => ({ ...old, text: value }))
        }}
        onKeyDown={press}
        onPaste={(event: ClipboardEvent) => uploadAll(event.clipboardData.files)}
      />
      <div className="composer-bar">
        <input
          ref={chooser}
          type="file"
          multiple
          hidden
          aria-label={words.attach}
          onChange={(event) => {
            uploadAll(event.target.files)
            event.target.value = ''
          }}
        />
        <IconButton icon="attach" small label={words.attach} onClick={() => chooser.current?.click()} />
        <AgentAndModel />
        <span className="grow" />
        {isBusy ? (
          <Button
            small
            icon="stop"
            disabled={isStopping}
            onClick={(event) => {
              onStop()
              toField(event)
            }}
          >
            {words.stop}
          </Button>
        ) : null}
        <IconButton
          icon="send"
          look="primary"
          small
          label={isBusy ? words.queueIt : words.send}
          disabled={!canSend}
          onClick={(event) => {
            send()
            toField(event)
          }}
        />
      </div>
    </div>
  )
}
