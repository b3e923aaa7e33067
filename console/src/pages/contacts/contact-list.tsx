// The list of contacts: search, tags, pages, import and export. The address holds what is searched and the page.

import { useEffect, useRef, useState } from 'react'
import { Link, useLocation, useSearchParams } from 'wouter'
import { useApi } from '../../api/api.ts'
import { useCurl } from '../../api/curl.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { useShortcuts } from '../../app/shortcuts.ts'
import { shellWords } from '../../app/words.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Page } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { SearchField } from '../../ui/search-field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { type Contact, contactAddress, type ContactPage } from './contact-api.ts'
import { ContactForm } from './contact-form.tsx'
import { ContactImport } from './contact-import.tsx'
import { contactWords } from './words.ts'
import '../../ui/table.css'
import './contacts.css'

const pageRows = 25
/** A search is sent when the typing pauses. */
const typingMs = 200

export function ContactList() {
  const words = useWords(contactWords)
  const shell = useWords(shellWords)
  const locale = useLocale()
  const api = useApi()
  const [, navigate] = useLocation()
  const { search, tag, page, show } = useView()
  const [text, setText] = useState(search)
  const [dialog, setDialog] = useState<'new' | 'import' | null>(null)
  const field = useRef<HTMLInputElement>(null)
  const { data, error, reload } = useLoaded<ContactPage>(`contacts ${search} ${tag} ${page}`, ({ json }, signal) =>
    json('/v1/contacts', {
      query: { limit: pageRows, page, search: search || undefined, tag: tag || undefined },
      signal,
    }),
  )
  const shown = useLatest(data)
  useEffect(() => {
    if (text.trim() === search) return
    const timer = setTimeout(() => show({ search: text.trim(), page: 1 }), typingMs)
    return () => clearTimeout(timer)
  }, [text, search, show])
  useShortcuts([
    { keys: '/', label: words.search, run: () => field.current?.focus() },
    { keys: 'n', label: words.newContact, run: () => setDialog('new') },
  ])
  const exportAs = async (format: 'vcard' | 'csv') => {
    try {
      saveFile(
        await api.blob(`/v1/contacts/export`, undefined, { format }),
        format === 'csv' ? 'contacts.csv' : 'contacts.vcf',
      )
    } catch (problem) {
      showProblem(words.exportFailed, problemOf(problem))
    }
  }
  const isFiltered = search !== '' || tag !== ''
  const isEmpty = shown !== undefined && shown.total === 0 && !isFiltered
  return (
    <Page
      title={words.title}
      about={shown === undefined ? undefined : words.count(shown.total.toLocaleString(locale))}
      actions={
        <>
          <Button icon="up" onClick={() => setDialog('import')}>
            {words.importFile}
          </Button>
          {isEmpty ? null : (
            <>
              <Button icon="download" aria-label={words.exportVcard} onClick={() => void exportAs('vcard')}>
                vCard
              </Button>
              <Button icon="download" aria-label={words.exportCsv} onClick={() => void exportAs('csv')}>
                CSV
              </Button>
            </>
          )}
          <Button look="primary" icon="plus" onClick={() => setDialog('new')}>
            {words.newContact}
          </Button>
        </>
      }
      bar={
        isEmpty ? undefined : (
          <>
            <div className="contacts-search">
              <SearchField ref={field} label={words.search} value={text} onChange={setText} />
            </div>
            {tag === '' ? null : (
              <Button small icon="close" aria-label={words.clearTag(tag)} onClick={() => show({ tag: '', page: 1 })}>
                {tag}
              </Button>
            )}
          </>
        )
      }
    >
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {shown === undefined && error === undefined ? <Spinner center /> : null}
      {isEmpty ? <NoContacts onImport={() => setDialog('import')} /> : null}
      {shown !== undefined && shown.items.length === 0 && isFiltered ? (
        <EmptyState icon="search" title={words.nothingFound} />
      ) : null}
      {shown === undefined || shown.items.length === 0 ? null : (
        <>
          <ContactTable contacts={shown.items} onTag={(chosen) => show({ tag: chosen, page: 1 })} />
          <Paging total={shown.total} page={page} onPage={(next) => show({ page: next })} />
        </>
      )}
      {dialog === 'new' ? (
        <ContactForm onClose={() => setDialog(null)} onSaved={(saved) => navigate(contactAddress(saved))} />
      ) : null}
      {dialog === 'import' ? <ContactImport onClose={() => setDialog(null)} onImported={reload} /> : null}
      <span className="visually-hidden" role="status">
        {shown === undefined ? shell.loading : words.count(shown.total.toLocaleString(locale))}
      </span>
    </Page>
  )
}

type View = { search: string; tag: string; page: number }

/** What the address says is shown. */
function useView(): View & { show(changes: Partial<View>): void } {
  const [parameters, setParameters] = useSearchParams()
  const latest = useRef(setParameters)
  latest.current = setParameters
  const [show] = useState(() => (changes: Partial<View>) => {
    latest.current(
      (old) => {
        const next = new URLSearchParams(old)
        for (const [name, value] of Object.entries({ q: changes.search, tag: changes.tag, page: changes.page })) {
          if (value === undefined) continue
          if (value === '' || value === 1) next.delete(name)
          else next.set(name, String(value))
        }
        return next
      },
      { replace: changes.page === undefined || changes.page === 1 },
    )
  })
  const page = Number(parameters.get('page') ?? 1)
  return {
    search: parameters.get('q') ?? '',
    tag: parameters.get('tag') ?? '',
    page: Number.isInteger(page) && page > 0 ? page : 1,
    show,
  }
}

/** The last list stays visible while the next one is on its way. */
function useLatest<Data>(data: Data | undefined): Data | undefined {
  const latest = useRef(data)
  if (data !== undefined) latest.current = data
  return latest.current
}

function ContactTable({ contacts, onTag }: { contacts: readonly Contact[]; onTag(tag: string): void }) {
  const words = useWords(contactWords)
  return (
    <div className="table-box" tabIndex={0} role="region" aria-label={words.title}>
      <table className="table">
        <thead>
          <tr>
            <th scope="col">{words.name}</th>
            <th scope="col">{words.company}</th>
            <th scope="col" className="table-wide">
              {words.email}
            </th>
            <th scope="col" className="table-wide">
              {words.tags}
            </th>
            <th scope="col" className="table-wide table-number">
              {words.changed}
            </th>
          </tr>
        </thead>
        <tbody>
          {contacts.map((contact) => (
            <tr key={contact.id}>
              <td>
                <span className="row">
                  <span className="contact-avatar" aria-hidden="true">
                    {initialOf(contact.name)}
                  </span>
                  <span className="cut">
                    <Link href={contactAddress(contact)}>
                      <bdi>{withVisibleControls(contact.name)}</bdi>
                    </Link>
                    {contact.alias === null ? null : <bdi className="faint"> {withVisibleControls(contact.alias)}</bdi>}
                  </span>
                </span>
              </td>
              <td className="cut">
                <bdi>{withVisibleControls(contact.company ?? '')}</bdi>
                {contact.position === null ? null : (
                  <bdi className="faint"> {withVisibleControls(contact.position)}</bdi>
                )}
              </td>
              <td className="cut table-wide">{withVisibleControls(contact.email ?? '')}</td>
              <td className="table-wide">
                <span className="contact-tags">
                  {contact.tags.slice(0, 3).map((tag) => (
                    <Tag key={tag} tag={tag} onChoose={() => onTag(tag)} />
                  ))}
                  {contact.tags.length > 3 ? <span className="faint">+{contact.tags.length - 3}</span> : null}
                </span>
              </td>
              <td className="table-wide table-number faint">
                <TimeAgo at={contact.updatedAtMs} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function initialOf(name: string): string {
  return /\p{L}|\p{N}/u.exec(name)?.[0].toUpperCase() ?? '?'
}

function Tag({ tag, onChoose }: { tag: string; onChoose(): void }) {
  const words = useWords(contactWords)
  return (
    <button type="button" className="contact-tag cut" aria-label={words.filterTag(tag)} onClick={onChoose}>
      {withVisibleControls(tag)}
    </button>
  )
}

function Paging({ total, page, onPage }: { total: number; page: number; onPage(page: number): void }) {
  const words = useWords(contactWords)
  const locale = useLocale()
  const pages = Math.max(1, Math.ceil(total / pageRows))
  if (pages === 1) return null
  return (
    <nav className="row" aria-label={words.pages}>
      <IconButton
        icon="left"
        look="plain"
        small
        label={words.previousPage}
        disabled={page <= 1}
        onClick={() => onPage(page - 1)}
      />
      <span className="soft numbers">{words.page(page.toLocaleString(locale), pages.toLocaleString(locale))}</span>
      <IconButton
        icon="right"
        look="plain"
        small
        label={words.nextPage}
        disabled={page >= pages}
        onClick={() => onPage(page + 1)}
      />
    </nav>
  )
}

function NoContacts({ onImport }: { onImport(): void }) {
  const words = useWords(contactWords)
  const call = useCurl('/v1/contacts', { body: { name: 'Ann Lee', company: 'Acme', email: 'ann@example.com' } })
  return (
    <EmptyState
      icon="contact"
      title={words.empty}
      call={call}
      actions={
        <Button icon="up" onClick={onImport}>
          {words.importFile}
        </Button>
      }
    >
      {words.emptyHelp}
    </EmptyState>
  )
}
