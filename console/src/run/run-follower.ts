// Reads one run and keeps its view. Frames are collected and applied once per animation frame, however fast they come.
// The connection is the client's: it comes back by itself after the last frame that was received. `cut` closes it on
// purpose, to show what happens then.

import type { PolylogError, RunFrame } from '@polylog/client'
import type { Api } from '../api/api.ts'
import { problemOf } from '../api/use-loaded.ts'
import { createStore, type Store } from '../app/store.ts'
import { framesOf, nativeFormat } from './journal-row.ts'
import { positionOf, sips, takeStreamPlace } from './run-connection.ts'
import { emptyView, isEnded, reduceView, type RunView } from './run-view.ts'

/**
 * `connecting`: nothing has come yet. `live`: following. `reconnecting`: lost, and tried again. `cut`: closed on purpose.
 * `caught-up`: back, with everything that was missed. `ended`: the run has ended and all of it is here. `failed`: the run
 * cannot be read.
 */
export type Connection = 'connecting' | 'live' | 'reconnecting' | 'cut' | 'caught-up' | 'ended' | 'failed'

/** The answer to the request that started a run, which goes on as its stream. */
export type OpenedRun = {
  frames: AsyncIterable<RunFrame>
  controller: AbortController
  /** Sets who hears of the connection from now on. */
  hear(listener: (connection: { state: 'open' | 'waiting' }) => void): void
}

export type FollowedRun = {
  view: RunView
  connection: Connection
  /** How many frames came from the journal after the last reconnection. */
  recovered: number
  error: PolylogError | null
}

/** How long `caught-up` is shown before it becomes `live`. */
const caughtUpMs = 4000
/** A hidden page gets no animation frames; it applies what has come this often. */
const hiddenMs = 250
/** How long the frame of the journal's newest event is waited for. */
const frameWaitMs = 1000

export class RunFollower {
  readonly run: Store<FollowedRun>
  private readonly api: Api
  private readonly runId: string
  private opened: OpenedRun | undefined
  private controller: AbortController | null = null
  private waiting: RunFrame[] = []
  private isScheduled = false
  private readers = 0
  /** After a loss: counts frames up to `head`, which the journal had when the connection came back. */
  private recovering: { count: number; head: number | null } | null = null

  /** `opened` is the answer to the request that started the run, if it is still being received. */
  constructor(api: Api, runId: string, opened?: OpenedRun) {
    this.api = api
    this.runId = runId
    this.opened = opened
    this.run = createStore<FollowedRun>({ view: emptyView, connection: 'connecting', recovered: 0, error: null })
  }

  /** Follows the run while somebody looks; returns a function that stops it. */
  follow(): () => void {
    this.readers += 1
    if (this.readers === 1 && !this.isDone()) this.start()
    return () => {
      this.readers -= 1
      // The next reader may come with the same drawing.
      if (this.readers === 0) queueMicrotask(() => this.readers === 0 && this.stop())
    }
  }

  /** Closes the connection. The run goes on; `restore` opens it again. */
  cut(): void {
    this.stop()
    this.change({ connection: 'cut' })
  }

  restore(): void {
    if (this.run.get().connection !== 'cut') return
    this.change({ connection: 'reconnecting' })
    this.recovering = { count: 0, head: null }
    this.start()
  }

  private isDone(): boolean {
    return isEnded(this.run.get().view)
  }

  private start(): void {
    const { opened } = this
    this.opened = undefined
    this.controller = opened?.controller ?? new AbortController()
    void this.read(this.controller, opened)
  }

  private stop(): void {
    this.controller?.abort()
    this.controller = null
    this.recovering = null
  }

  private async read(controller: AbortController, opened: OpenedRun | undefined): Promise<void> {
    const { signal } = controller
    const after = this.run.get().view.state.cursor
    const onConnection = ({ state }: { state: 'open' | 'waiting' }) => {
      if (signal.aborted) return
      if (state === 'waiting') {
        this.change({ connection: 'reconnecting' })
        this.recovering ??= { count: 0, head: null }
      } else if (this.recovering === null) this.change({ connection: 'live' })
      else void this.findHead(signal)
    }
    opened?.hear(onConnection)
    if (opened !== undefined) this.change({ connection: 'live' })
    try {
      const hasPlace = opened !== undefined || (await takeStreamPlace(signal))
      const source =
        opened?.frames ??
        (hasPlace ? this.api.client.attach(this.runId, { after, signal, onConnection }) : this.sips(signal))
      for await (const frame of source) {
        if (signal.aborted) return
        this.add(frame)
      }
      this.flush()
      if (signal.aborted) return
      const missed = this.recovering?.count ?? 0
      this.recovering = null
      this.change({ connection: 'ended', error: null, ...(missed === 0 ? {} : { recovered: missed }) })
    } catch (error) {
      if (signal.aborted) return
      this.flush()
      this.change({ connection: 'failed', error: problemOf(error) })
    } finally {
      // Gives the place to another stream.
      controller.abort()
    }
  }

  private add(frame: RunFrame): void {
    this.waiting.push(frame)
    if (this.recovering !== null) {
      this.recovering.count += 1
      this.checkCaughtUp(frame.id)
    }
    if (this.isScheduled) return
    this.isScheduled = true
    const flush = () => {
      this.isScheduled = false
      this.flush()
    }
    if (document.hidden) setTimeout(flush, hiddenMs)
    else requestAnimationFrame(flush)
  }

  private flush(): void {
    if (this.waiting.length === 0) return
    const frames = this.waiting
    this.waiting = []
    let { view } = this.run.get()
    for (const frame of frames) view = reduceView(view, frame)
    this.change({ view })
  }

  /** The run without a lasting connection. */
  private async *sips(signal: AbortSignal): AsyncGenerator<RunFrame, void, undefined> {
    const rows = sips(this.api, this.runId, {
      // The event of the last frame may have more of them; the fold ignores those that it has.
      after: Math.max(0, positionOf(this.run.get().view.state.cursor) - 1),
      formats: nativeFormat,
      signal,
      onRest: () => {
        if (this.recovering === null) this.change({ connection: 'live' })
        this.caughtUp()
      },
    })
    for await (const row of rows) yield* framesOf(row)
  }

  /** Asks how far the journal was when the connection came back. */
  private async findHead(signal: AbortSignal): Promise<void> {
    const { cursor } = await this.api.client.getRun(this.runId, { signal }).catch(() => ({ cursor: '0' }))
    if (signal.aborted || this.recovering === null) return
    this.recovering.head = positionOf(cursor)
    this.checkCaughtUp(this.waiting.at(-1)?.id ?? this.run.get().view.state.cursor)
    // The newest event may be one that has no frame.
    setTimeout(() => !signal.aborted && this.caughtUp(), frameWaitMs)
  }

  private checkCaughtUp(cursor: string): void {
    const head = this.recovering?.head ?? null
    if (head !== null && positionOf(cursor) >= head) this.caughtUp()
  }

  private caughtUp(): void {
    if (this.recovering === null) return
    const { count } = this.recovering
    this.recovering = null
    this.change({ connection: 'caught-up', recovered: count })
    setTimeout(() => this.run.get().connection === 'caught-up' && this.change({ connection: 'live' }), caughtUpMs)
  }

  private change(changes: Partial<FollowedRun>): void {
    this.run.set((old) => ({ ...old, ...changes }))
  }
}
