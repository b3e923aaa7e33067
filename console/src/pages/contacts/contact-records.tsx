// Facts, to-dos and events of a contact: each is a list with a line that adds to it.

import { type FormEvent, type ReactNode, useState } from 'react'
import { useApi } from '../../api/api.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { type ContactEvent, contactPath, type Fact, type Todo } from './contact-api.ts'
import { contactWords } from './words.ts'

const pageRows = 20
/** As the server has them. */
const charsMax = 2000
const dayMs = 86_400_000

export function Facts({ contactId }: { contactId: string }) {
  const words = useWords(contactWords)
  return (
    <Records<Fact>
      contactId={contactId}
      kind="facts"
      title={words.facts}
      empty={words.noFacts}
      addLabel={words.addFact}
      bodyOf={(content) => ({ content })}
      textOf={({ content }) => content}
      renderSide={({ createdAtMs }) => <TimeAgo at={createdAtMs} />}
    />
  )
}

export function Todos({ contactId }: { contactId: string }) {
  const words = useWords(contactWords)
  return (
    <Records<Todo>
      contactId={contactId}
      kind="todos"
      title={words.todos}
      empty={words.noTodos}
      addLabel={words.addTodo}
      dateLabel={words.due}
      bodyOf={(content, date) => ({ content, ...(date === null ? {} : { dueAt: date }) })}
      textOf={({ content }) => content}
      isDone={({ status }) => status !== 'pending'}
      toggle={({ status }) => ({ status: status === 'pending' ? 'completed' : 'pending' })}
      renderSide={(todo) => <DueDate todo={todo} />}
    />
  )
}

function DueDate({ todo: { status, dueAtMs } }: { todo: Todo }) {
  const words = useWords(contactWords)
  const locale = useLocale()
  if (status === 'completed') return <Badge tone="good">{words.completed}</Badge>
  if (dueAtMs === null) return null
  const day = dayText(dueAtMs, locale)
  // The end of the day counts: a to-do that is due today is not overdue.
  const isOverdue = status === 'pending' && dueAtMs + dayMs < Date.now()
  return isOverdue ? (
    <Badge tone="bad">
      {words.overdue} · {day}
    </Badge>
  ) : (
    <span className="numbers">{day}</span>
  )
}

export function Events({ contactId }: { contactId: string }) {
  const words = useWords(contactWords)
  const locale = useLocale()
  return (
    <Records<ContactEvent>
      contactId={contactId}
      kind="events"
      title={words.events}
      empty={words.noEvents}
      addLabel={words.addEvent}
      dateLabel={words.date}
      bodyOf={(title, date) => ({ title, ...(date === null ? {} : { eventDate: date }) })}
      textOf={({ title, description }) => (description === null ? title : `${title} – ${description}`)}
      renderSide={({ eventDateMs }) =>
        eventDateMs === null ? null : <span className="numbers">{dayText(eventDateMs, locale)}</span>
      }
    />
  )
}

/** A date without a time is stored as its midnight in UTC, and must not become the day before elsewhere. */
function dayText(at: number, locale: string): string {
  return new Date(at).toLocaleDateString(locale, {
    dateStyle: 'medium',
    ...(at % dayMs === 0 ? { timeZone: 'UTC' } : {}),
  })
}

type RecordsProps<Row> = {
  contactId: string
  kind: 'facts' | 'todos' | 'events'
  title: string
  empty: string
  addLabel: string
  /** With it, a new record can have a date. */
  dateLabel?: string
  bodyOf(text: string, date: string | null): Record<string, string>
  textOf(row: Row): string
  renderSide(row: Row): ReactNode
  isDone?: (row: Row) => boolean
  /** The change that a press on its box makes. */
  toggle?: (row: Row) => Record<string, string>
}

function Records<Row extends { id: string }>(props: RecordsProps<Row>) {
  const { contactId, kind, title, empty, textOf, renderSide, isDone, toggle } = props
  const words = useWords(contactWords)
  const locale = useLocale()
  const api = useApi()
  const [pages, setPages] = useState(1)
  const path = contactPath(contactId, `/${kind}`)
  const { data, error, reload, change } = useLoaded<{ items: Row[]; total: number }>(
    `${kind} ${contactId}`,
    async ({ json }, signal) => {
      const loaded = await Promise.all(
        Array.from({ length: pages }, (_, index) =>
          json<{ items: Row[]; total: number }>(path, { query: { limit: pageRows, page: index + 1 }, signal }),
        ),
      )
      return { items: loaded.flatMap(({ items }) => items), total: loaded[0]?.total ?? 0 }
    },
  )
  const attempt = async (act: () => Promise<unknown>) => {
    try {
      await act()
      reload()
      return true
    } catch (problem) {
      showProblem(words.recordFailed, problemOf(problem))
      return false
    }
  }
  const remove = (row: Row) => {
    change((old) => ({ items: old.items.filter(({ id }) => id !== row.id), total: old.total - 1 }))
    void attempt(() => api.json(`${path}/${encodeURIComponent(row.id)}`, { method: 'DELETE' })).then(
      (isDone) => isDone || reload(),
    )
  }
  const left = data === undefined ? 0 : data.total - data.items.length
  return (
    <Card title={title} actions={data === undefined ? null : <Badge>{data.total.toLocaleString(locale)}</Badge>}>
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {data === undefined && error === undefined ? <Spinner center /> : null}
      {data?.total === 0 ? <p className="faint records-empty">{empty}</p> : null}
      <ul className="records" aria-label={title}>
        {data?.items.map((row) => (
          <li key={row.id} className="record" data-done={isDone?.(row) === true}>
            {toggle === undefined ? null : (
              <input
                type="checkbox"
                className="record-box"
                aria-label={words.markDone(textOf(row))}
                checked={isDone?.(row) === true}
                onChange={() =>
                  void attempt(() =>
                    api.json(`${path}/${encodeURIComponent(row.id)}`, { method: 'PATCH', body: toggle(row) }),
                  )
                }
              />
            )}
            <span className="grow record-text" dir="auto">
              {withVisibleControls(textOf(row))}
            </span>
            <span className="faint record-side">{renderSide(row)}</span>
            <IconButton icon="trash" small label={words.remove(textOf(row))} onClick={() => remove(row)} />
          </li>
        ))}
      </ul>
      {left > 0 ? (
        <div>
          <Button
            small
            look="quiet"
            onClick={() => {
              setPages(pages + 1)
              reload()
            }}
          >
            {words.more(Math.min(left, pageRows))}
          </Button>
        </div>
      ) : null}
      <AddRecord {...props} onAdd={(body) => attempt(() => api.json(path, { method: 'POST', body }))} />
    </Card>
  )
}

type AddRecordProps = Pick<RecordsProps<never>, 'addLabel' | 'dateLabel' | 'bodyOf'> & {
  onAdd(body: Record<string, string>): Promise<boolean>
}

function AddRecord({ addLabel, dateLabel, bodyOf, onAdd }: AddRecordProps) {
  const words = useWords(contactWords)
  const [text, setText] = useState('')
  const [date, setDate] = useState('')
  const [isSent, setSent] = useState(false)
  const add = async (event: FormEvent) => {
    event.preventDefault()
    if (text.trim() === '') return
    setSent(true)
    if (await onAdd(bodyOf(text.trim(), date === '' ? null : date))) {
      setText('')
      setDate('')
    }
    setSent(false)
  }
  return (
    <form className="record-add" onSubmit={(event) => void add(event)}>
      <div className="grow">
        <TextField
          label={addLabel}
          hideLabel
          placeholder={`${addLabel}…`}
          maxLength={charsMax}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
      </div>
      {dateLabel === undefined ? null : (
        <div className="record-date">
          <TextField
            label={dateLabel}
            hideLabel
            type="date"
            value={date}
            onChange={({ target }) => setDate(target.value)}
          />
        </div>
      )}
      <Button type="submit" disabled={isSent || text.trim() === ''}>
        {words.add}
      </Button>
    </form>
  )
}
