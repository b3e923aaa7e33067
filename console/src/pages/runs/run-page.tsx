// One run: what it did when, every event of its journal, and what a person saw at any moment of it. The moment, the views and
// the filter are in the address.

import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import type { Block } from '@polylog/client'
import { Link, useLocation } from 'wouter'
import { useCommands } from '../../app/palette.tsx'
import { useShortcuts } from '../../app/shortcuts.ts'
import { useWords } from '../../i18n/words.ts'
import { noFilter, useFiltered } from '../../run/event-filter.ts'
import { scaleOf } from '../../run/time-scale.ts'
import { usePlayback } from '../../run/use-playback.ts'
import { useRunRecord } from '../../run/use-run-record.ts'
import { WaterfallView } from '../../run/waterfall-view.tsx'
import { announce } from '../../ui/announcements.ts'
import { useNow } from '../../ui/countdown.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { type ViewTab, ViewTabs } from '../../ui/view-tabs.tsx'
import { useMedia } from '../../ui/use-media.ts'
import { EventDetail } from './event-detail.tsx'
import { EventFilterBar } from './event-filter-bar.tsx'
import { EventList } from './event-list.tsx'
import { MomentView } from './moment-view.tsx'
import { RulesView } from './rules-view.tsx'
import { type MainView, readAddress, type SideView, useAddress } from './run-address.ts'
import { RunHead } from './run-head.tsx'
import { Scrubber } from './scrubber.tsx'
import { useRules } from './use-rules.ts'
import { runsWords } from './words.ts'
import './run-page.css'

export function RunPage({ runId }: { runId: string }) {
  const words = useWords(runsWords)
  const first = useMemo(() => readAddress(location.search), [])
  const [view, setView] = useState<MainView>(first.view)
  const [side, setSide] = useState<SideView>(first.side)
  const [filter, setFilter] = useState(first.filter)
  /** On phones one of the two panes is shown. */
  const [pane, setPane] = useState<'main' | 'side'>('main')
  const isNarrow = useMedia('(width < 1000px)')
  const search = useRef<HTMLInputElement>(null)

  const { record, count, connection, error } = useRunRecord(runId)
  const isEnded = record.waterfall.run?.end != null
  const now = useNow(!isEnded)
  const start = record.times[0] ?? now
  const end = record.waterfall.run?.end ?? Math.max(now, record.times.at(-1) ?? now)
  const scale = useMemo(() => scaleOf(record.waterfall.run?.segments ?? [], start, end), [record, count, start, end])
  const playback = usePlayback({ record, count, scale, start: first.seq })
  const { index, position, isPlaying, seek, step, toEnd, toggle } = playback
  const [, navigate] = useLocation()
  const row = record.rows[index]
  const { found, isDone } = useFiltered(record.rows, count, filter)
  const rules = useRules(runId, isEnded)
  useAddress({ seq: position === null ? null : (row?.seq ?? null), view, side, filter })

  const seekSeq = useCallback((seq: number) => seek(record.indexOfSeq(seq)), [record, seek])
  const seekTime = useCallback((time: number) => seek(record.indexOfTime(time)), [record, seek])
  const toNextError = () => {
    const error = record.nextError(index)
    if (error !== undefined) seek(error)
  }
  const stepInList = (by: 1 | -1) => {
    if (found === null) return step(by)
    const next = by === 1 ? found.find((at) => at > index) : found.findLast((at) => at < index)
    if (next !== undefined) seek(next)
  }
  const openEvent = useCallback(() => setSide('event'), [])
  const seqOf = useCallback((block: Block) => record.seqOfBlock(block), [record])
  const tabLabels: Record<MainView | SideView, string> = {
    waterfall: words.viewWaterfall,
    events: words.viewEvents,
    conversation: words.sideConversation,
    event: words.sideEvent,
    rules: words.sideRules,
  }
  const tabsOf = <Name extends MainView | SideView>(...names: Name[]): ViewTab<Name>[] =>
    names.map((name) => ({ name, label: tabLabels[name] }))
  const mainTabs = tabsOf('waterfall', 'events')
  const sideTabs = tabsOf('conversation', 'event', 'rules')
  useShortcuts([
    { keys: 'ArrowLeft', label: words.keysStep, run: () => step(-1) },
    { keys: 'ArrowRight', label: words.keysStep, run: () => step(1) },
    { keys: 'ArrowUp', label: words.keysMatch, run: () => stepInList(-1) },
    { keys: 'ArrowDown', label: words.keysMatch, run: () => stepInList(1) },
    { keys: 'k', label: words.keysPlay, run: toggle },
    { keys: 'l', label: words.keysFollow, run: toEnd },
    { keys: 'e', label: words.keysError, run: toNextError },
    { keys: 'v', label: words.keysView, run: () => setView(view === 'events' ? 'waterfall' : 'events') },
    {
      keys: '/',
      label: words.keysSearch,
      run: () => {
        // The field has to be there before it can take the next key.
        flushSync(() => {
          setView('events')
          setPane('main')
        })
        search.current?.focus()
      },
    },
  ])

  useCommands([
    { id: 'run-play', label: words.keysPlay, icon: 'play', keys: 'k', run: toggle },
    { id: 'run-error', label: words.keysError, icon: 'alert', keys: 'e', run: toNextError },
    { id: 'run-end', label: words.keysFollow, icon: 'last', keys: 'l', run: toEnd },
    {
      id: 'run-wires',
      label: words.allWires,
      icon: 'wire',
      run: () => navigate(`/wires/${encodeURIComponent(runId)}`),
    },
  ])
  // The slider tells its value only while it has the focus.
  useEffect(() => {
    if (position !== null && !isPlaying && row !== undefined) announce(words.announced(row.seq, row.type))
  }, [position, isPlaying])

  if (connection === 'failed' && count === 0 && error !== null) {
    return error.status === 404 ? (
      <EmptyState
        icon="run"
        title={words.notFound}
        actions={
          <Link className="button button-plain" href="/runs">
            {words.back}
          </Link>
        }
      >
        {words.notFoundHelp}
      </EmptyState>
    ) : (
      <div className="run-problem">
        <Problem error={error} />
      </div>
    )
  }
  if (count === 0) return <Spinner center />
  return (
    <div className="run-page">
      <RunHead
        runId={runId}
        view={record.viewAfter(count)}
        record={record}
        count={count}
        now={end}
        connection={connection}
        rules={rules}
        onShowRules={() => {
          setSide('rules')
          setPane('side')
        }}
      />
      <Scrubber playback={playback} record={record} count={count} isLive={!isEnded} onNextError={toNextError} />
      {isNarrow ? (
        <div className="run-pane-bar run-pane-bar-narrow">
          <ViewTabs
            label={words.views}
            panel={pane === 'main' ? 'run-main' : 'run-side'}
            current={pane === 'main' ? view : side}
            onChoose={(name) => {
              if (name === 'waterfall' || name === 'events') setView(name)
              else setSide(name)
              setPane(name === 'waterfall' || name === 'events' ? 'main' : 'side')
            }}
            tabs={[...mainTabs, ...sideTabs]}
          />
        </div>
      ) : null}
      <div className="run-panes">
        {isNarrow && pane === 'side' ? null : (
          <section className="run-pane run-pane-main" aria-label={words.views}>
            {isNarrow && view === 'waterfall' ? null : (
              <div className="run-pane-bar">
                {isNarrow ? null : (
                  <ViewTabs
                    label={words.views}
                    panel="run-main"
                    current={view}
                    onChoose={(name) => setView(name)}
                    tabs={mainTabs}
                  />
                )}
                {view === 'events' ? (
                  <EventFilterBar
                    filter={filter}
                    onChange={setFilter}
                    found={found?.length ?? null}
                    isDone={isDone}
                    count={count}
                    searchRef={search}
                  />
                ) : null}
              </div>
            )}
            <div id="run-main" role="tabpanel" className="run-panel" aria-label={tabLabels[view]}>
              {view === 'waterfall' ? (
                <WaterfallView
                  spans={record.waterfall.spans}
                  version={count}
                  scale={scale}
                  now={end}
                  at={position === null ? end : (record.times[index] ?? end)}
                  seq={row?.seq ?? 0}
                  onSeekSeq={seekSeq}
                  onSeekTime={seekTime}
                />
              ) : (
                <EventList
                  record={record}
                  count={count}
                  found={found}
                  index={index}
                  start={start}
                  onSeek={seek}
                  onOpen={openEvent}
                  onClear={() => setFilter(noFilter)}
                />
              )}
            </div>
          </section>
        )}
        {isNarrow && pane === 'main' ? null : (
          <section className="run-pane run-pane-side" aria-label={words.sideViews}>
            {isNarrow ? null : (
              <div className="run-pane-bar">
                <ViewTabs
                  label={words.sideViews}
                  panel="run-side"
                  current={side}
                  onChoose={(name) => setSide(name)}
                  tabs={sideTabs}
                />
              </div>
            )}
            <div id="run-side" role="tabpanel" className="run-panel" aria-label={tabLabels[side]}>
              {side === 'conversation' ? (
                <MomentView
                  runId={runId}
                  view={record.viewAfter(index + 1)}
                  row={row}
                  isHead={index >= count - 1}
                  seqOf={seqOf}
                  onSeekSeq={seekSeq}
                />
              ) : null}
              {side === 'event' ? <EventDetail runId={runId} row={row} start={start} /> : null}
              {side === 'rules' ? <RulesView runId={runId} rules={rules} onSeekSeq={seekSeq} /> : null}
            </div>
          </section>
        )}
      </div>
    </div>
  )
}
