// Creates a contact, or changes one.

import { type FormEvent, useId, useState } from 'react'
import { useApi } from '../../api/api.ts'
import { problemOf } from '../../api/use-loaded.ts'
import { shellWords } from '../../app/words.ts'
import { useWords } from '../../i18n/words.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextArea, TextField } from '../../ui/field.tsx'
import { Problem } from '../../ui/problem.tsx'
import { type Contact, contactPath } from './contact-api.ts'
import { contactWords } from './words.ts'

const textFields = ['name', 'alias', 'company', 'position', 'email', 'phone'] as const

/** As the server has them. */
const charsMax = { name: 200, alias: 200, company: 200, position: 200, email: 320, phone: 100, note: 10_000 }

type Draft = Record<(typeof textFields)[number] | 'note' | 'tags', string>

type ContactFormProps = { contact?: Contact; onClose(): void; onSaved(contact: Contact): void }

export function ContactForm({ contact, onClose, onSaved }: ContactFormProps) {
  const words = useWords(contactWords)
  const shell = useWords(shellWords)
  const api = useApi()
  const form = useId()
  const [draft, setDraft] = useState<Draft>(() => draftOf(contact))
  const [problem, setProblem] = useState<{ message: string; code?: string } | null>(null)
  const [isSent, setSent] = useState(false)
  const save = async (event: FormEvent) => {
    event.preventDefault()
    setSent(true)
    setProblem(null)
    try {
      const body = bodyOf(draft)
      const saved = await (contact === undefined
        ? api.json<Contact>('/v1/contacts', { method: 'POST', body })
        : api.json<Contact>(contactPath(contact.id), { method: 'PATCH', body }))
      onClose()
      onSaved(saved)
    } catch (error) {
      setSent(false)
      setProblem(problemOf(error))
    }
  }
  return (
    <Dialog
      title={contact === undefined ? words.newContact : words.edit}
      width="medium"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{shell.cancel}</Button>
          <Button look="primary" type="submit" form={form} disabled={isSent}>
            {contact === undefined ? words.create : shell.save}
          </Button>
        </>
      }
    >
      <form id={form} className="stack" onSubmit={(event) => void save(event)}>
        {problem === null ? null : <Problem error={problem} />}
        <div className="contact-form">
          {textFields.map((name) => (
            <TextField
              key={name}
              label={words[name]}
              autoFocus={name === 'name'}
              required={name === 'name'}
              type={name === 'email' ? 'email' : name === 'phone' ? 'tel' : 'text'}
              autoComplete="off"
              maxLength={charsMax[name]}
              value={draft[name]}
              onChange={({ target }) => setDraft({ ...draft, [name]: target.value })}
            />
          ))}
        </div>
        <TextField
          label={words.tags}
          help={words.tagsHelp}
          value={draft.tags}
          onChange={({ target }) => setDraft({ ...draft, tags: target.value })}
        />
        <TextArea
          label={words.note}
          rows={3}
          maxLength={charsMax.note}
          value={draft.note}
          onChange={({ target }) => setDraft({ ...draft, note: target.value })}
        />
      </form>
    </Dialog>
  )
}

function draftOf(contact: Contact | undefined): Draft {
  const text = (value: string | null | undefined) => value ?? ''
  return {
    name: text(contact?.name),
    alias: text(contact?.alias),
    company: text(contact?.company),
    position: text(contact?.position),
    email: text(contact?.email),
    phone: text(contact?.phone),
    note: text(contact?.note),
    tags: contact?.tags.join(', ') ?? '',
  }
}

/** An empty field empties the field of the contact. */
function bodyOf({ tags, ...texts }: Draft): Record<string, string | string[] | null> {
  const fields = Object.entries(texts).map(([name, value]) => [name, value.trim() === '' ? null : value.trim()])
  return {
    ...(Object.fromEntries(fields) as Record<string, string | null>),
    tags: tags
      .split(/[,，]/)
      .map((tag) => tag.trim())
      .filter((tag) => tag !== ''),
  }
}
