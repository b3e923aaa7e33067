// What happens while the connection is cut: the answer above stands still, and this panel asks the journal, over plain
// requests, what it has got meanwhile. After the reconnection a notice says how much came back.

import { useEffect, useRef, useState } from 'react'
import type { TimelineEntry } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { useWords } from '../../i18n/words.ts'
import type { FollowedRun, RunFollower } from '../../run/run-follower.ts'
import { Button } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { chatWords } from './words.ts'
import './cut-panel.css'

const askEveryMs = 400
/** After this time the connection comes back by itself. */
const cutSeconds = 6
/** The end of the text that the journal has. */
const shownChars = 600

export function CutPanel({ runId, follower }: { runId: string; follower: RunFollower }) {
  const words = useWords(chatWords)
  const { events, text } = useJournalMeanwhile(runId, follower.run.get().view.state.cursor)
  const [left, setLeft] = useState(cutSeconds)
  useEffect(() => {
    const timer = setInterval(() => setLeft((seconds) => seconds - 1), 1000)
    return () => clearInterval(timer)
  }, [])
  useEffect(() => {
    if (left <= 0) follower.restore()
  }, [left, follower])
  return (
    <section className="cut-panel" role="status">
      <div className="row row-wrap">
        <Icon name="plug" />
        <strong className="grow">{words.cutTitle}</strong>
        <span className="faint numbers" aria-hidden="true">
          {words.reconnectIn(Math.max(0, left))}
        </span>
        <Button small look="primary" onClick={() => follower.restore()}>
          {words.reconnectNow}
        </Button>
      </div>
      <p className="soft">{events === 0 ? words.cutNothing : words.cutJournal(events)}</p>
      {text === '' ? null : (
        <pre className="cut-panel-text">{text.length > shownChars ? `…${text.slice(-shownChars)}` : text}</pre>
      )}
    </section>
  )
}

/** The events of the journal after this cursor, asked for again and again. */
function useJournalMeanwhile(runId: string, cursor: string): { events: number; text: string } {
  const api = useApi()
  const [meanwhile, setMeanwhile] = useState({ events: 0, text: '' })
  const from = useRef(cursor)
  useEffect(() => {
    const controller = new AbortController()
    let after = 0
    let timer: ReturnType<typeof setTimeout> | undefined
    const ask = async () => {
      try {
        const { events } = await api.json<{ events: TimelineEntry[] }>(
          `/v1/agent/runs/${encodeURIComponent(runId)}/timeline`,
          {
            query: { after },
            signal: controller.signal,
          },
        )
        after = events.at(-1)?.seq ?? after
        const fresh = events.filter(({ id }) => Number.parseInt(id, 10) > Number.parseInt(from.current, 10))
        const added = fresh.map((entry) => (entry.event === 'agent.delta' ? entry.payload.delta : '')).join('')
        setMeanwhile((old) => ({ events: old.events + fresh.length, text: old.text + added }))
      } catch {
        // The server may be gone too; the next try tells.
      }
      if (!controller.signal.aborted) timer = setTimeout(() => void ask(), askEveryMs)
    }
    void ask()
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [api, runId])
  return meanwhile
}

/** Stays after a reconnection, as long as this page is open. */
export function CutNotice({ followed: { connection, recovered } }: { followed: FollowedRun }) {
  const words = useWords(chatWords)
  const [wasCut, setWasCut] = useState(false)
  if (connection === 'cut' && !wasCut) setWasCut(true)
  if (!wasCut || connection === 'cut' || recovered === 0) return null
  return (
    <p className="cut-notice">
      <Icon name="check" />
      {words.cutOver(recovered)}
    </p>
  )
}
