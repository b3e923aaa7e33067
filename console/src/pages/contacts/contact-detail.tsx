// One contact: who it is, what is known, what is to be done, what happened, and a brief.

import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { Conversation } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { useLoaded } from '../../api/use-loaded.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { type Contact, contactPath } from './contact-api.ts'
import { ContactBrief } from './contact-brief.tsx'
import { ContactForm } from './contact-form.tsx'
import { Events, Facts, Todos } from './contact-records.tsx'
import { contactWords } from './words.ts'
import './contacts.css'

export function ContactDetail({ id }: { id: string }) {
  const words = useWords(contactWords)
  const {
    data: contact,
    error,
    reload,
    change,
  } = useLoaded<Contact>(`contact ${id}`, ({ json }, signal) => json(contactPath(id), { signal }))
  const [, navigate] = useLocation()
  const [dialog, setDialog] = useState<'edit' | 'delete' | null>(null)
  const work = [contact?.position, contact?.company].filter((part) => part != null).join(' · ')
  return (
    <Page
      title={contact === undefined ? words.title : <bdi>{withVisibleControls(contact.name)}</bdi>}
      about={work === '' ? undefined : <bdi>{withVisibleControls(work)}</bdi>}
      actions={
        contact === undefined ? undefined : (
          <>
            <Button icon="edit" onClick={() => setDialog('edit')}>
              {words.edit}
            </Button>
            <Button icon="trash" onClick={() => setDialog('delete')}>
              {words.delete}
            </Button>
          </>
        )
      }
      bar={
        <Link href="/contacts" className="row contact-back">
          <Icon name="left" />
          {words.back}
        </Link>
      }
    >
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {contact === undefined && error === undefined ? <Spinner center /> : null}
      {contact === undefined ? null : (
        <div className="contact-columns">
          <div className="contact-column">
            <Details contact={contact} />
            <ContactBrief contactId={id} />
            <Conversations contactId={id} />
          </div>
          <div className="contact-column">
            <Todos contactId={id} />
            <Facts contactId={id} />
            <Events contactId={id} />
          </div>
        </div>
      )}
      {dialog === 'edit' && contact !== undefined ? (
        <ContactForm contact={contact} onClose={() => setDialog(null)} onSaved={(saved) => change(() => saved)} />
      ) : null}
      {dialog === 'delete' && contact !== undefined ? (
        <DeleteContact contact={contact} onClose={() => setDialog(null)} onDeleted={() => navigate('/contacts')} />
      ) : null}
    </Page>
  )
}

function Details({ contact }: { contact: Contact }) {
  const words = useWords(contactWords)
  const birthday = contact.profile['birthday']
  const rows = [
    [words.email, contact.email],
    [words.phone, contact.phone],
    [words.alias, contact.alias],
    [words.birthday, typeof birthday === 'string' ? birthday : null],
    [words.note, contact.note],
  ].flatMap(([label, value]) => (label == null || value == null ? [] : [[label, value] as const]))
  return (
    <Card title={words.details}>
      {contact.tags.length === 0 ? null : (
        <div className="row row-wrap">
          {contact.tags.map((tag) => (
            <Link key={tag} href={`/contacts?tag=${encodeURIComponent(tag)}`} className="contact-tag cut">
              {withVisibleControls(tag)}
            </Link>
          ))}
        </div>
      )}
      <dl className="contact-details">
        {rows.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd dir="auto">{withVisibleControls(value)}</dd>
          </div>
        ))}
        <div>
          <dt>{words.changed}</dt>
          <dd>
            <TimeAgo at={contact.updatedAtMs} />
          </dd>
        </div>
      </dl>
    </Card>
  )
}

function Conversations({ contactId }: { contactId: string }) {
  const words = useWords(contactWords)
  const locale = useLocale()
  const { data } = useLoaded<{ items: Conversation[]; total: number }>(
    `conversations ${contactId}`,
    ({ json }, signal) => json(contactPath(contactId, '/conversations'), { query: { limit: 20 }, signal }),
  )
  return (
    <Card
      title={words.conversations}
      actions={data === undefined ? null : <Badge>{data.total.toLocaleString(locale)}</Badge>}
    >
      {data?.items.length === 0 ? <p className="faint records-empty">{words.noConversations}</p> : null}
      <ul className="records">
        {data?.items.map(({ id, title, updatedAtMs }) => (
          <li key={id} className="record">
            <Link href={`/chat/${encodeURIComponent(id)}`} className="grow cut">
              <bdi>{withVisibleControls(title ?? words.untitled)}</bdi>
            </Link>
            <span className="faint record-side">
              <TimeAgo at={updatedAtMs} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  )
}

type DeleteContactProps = { contact: Contact; onClose(): void; onDeleted(): void }

function DeleteContact({ contact, onClose, onDeleted }: DeleteContactProps) {
  const words = useWords(contactWords)
  const api = useApi()
  return (
    <ConfirmDialog
      title={words.deleteTitle(withVisibleControls(contact.name))}
      action={words.delete}
      failed={words.deleteFailed}
      onConfirm={async () => {
        await api.json(contactPath(contact.id), { method: 'DELETE' })
        onDeleted()
      }}
      onClose={onClose}
    >
      {words.deleteHelp}
    </ConfirmDialog>
  )
}
