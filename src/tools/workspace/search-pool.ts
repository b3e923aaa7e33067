// The worker threads that run all regular-expression searches of the process. Models choose
// the expressions, so everything is bounded: the number of threads, the length of the queue,
// the time in the queue (then the search is refused) and the time at work (then its thread
// is terminated).

import { Worker } from 'node:worker_threads'
import { AppError } from '../../errors/app-error.ts'
import type { Clock, Timer } from '../../kit/clock.ts'
import type { Hit } from './line-hits.ts'
import { refused } from './refusal.ts'
import type { SearchReply, SearchRequest } from './search-thread.ts'

export type SearchPoolOptions = {
  clock: Clock
  threads?: number
  queueMax?: number
  /** How long a search may wait for a thread. */
  waitMs?: number
  /** How long one text may be searched. */
  workMs?: number
}

type Job = {
  request: SearchRequest
  /** Resolves or rejects the job; later calls do nothing. */
  settle(how: { hits: Hit[] } | { error: unknown }): void
  timer: Timer | undefined
  thread: Worker | undefined
}

export class SearchPool {
  readonly #clock: Clock
  readonly #threadsMax: number
  readonly #queueMax: number
  readonly #waitMs: number
  readonly #workMs: number
  readonly #queue: Job[] = []
  readonly #idle: Worker[] = []
  readonly #busy = new Map<Worker, Job>()
  #closed = false

  constructor(options: SearchPoolOptions) {
    this.#clock = options.clock
    this.#threadsMax = options.threads ?? 2
    this.#queueMax = options.queueMax ?? 64
    this.#waitMs = options.waitMs ?? 10_000
    this.#workMs = options.workMs ?? 5_000
  }

  /** The number of threads now, busy or idle. */
  get threads(): number {
    return this.#idle.length + this.#busy.size
  }

  /** The first hit of each line. Throws `file_refused` if the pattern is invalid or a limit is exceeded. */
  search(request: SearchRequest, signal: AbortSignal): Promise<Hit[]> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error)
      if (this.#closed) return reject(new AppError('tool_unavailable', 'The server is shutting down.'))
      if (this.#queue.length >= this.#queueMax) return reject(tooBusy())
      const abort = () => this.#giveUp(job, signal.reason)
      const job: Job = {
        request,
        timer: this.#clock.after(this.#waitMs, () => this.#giveUp(job, tooBusy())),
        thread: undefined,
        settle(how) {
          job.timer?.cancel()
          signal.removeEventListener('abort', abort)
          if ('hits' in how) resolve(how.hits)
          else reject(how.error)
        },
      }
      signal.addEventListener('abort', abort, { once: true })
      this.#queue.push(job)
      this.#next()
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    const threads = [...this.#idle, ...this.#busy.keys()]
    const error = new AppError('tool_unavailable', 'The server is shutting down.')
    for (const job of [...this.#queue.splice(0), ...this.#busy.values()]) job.settle({ error })
    this.#idle.length = 0
    this.#busy.clear()
    await Promise.all(threads.map((thread) => thread.terminate()))
  }

  #next(): void {
    while (this.#queue.length > 0 && (this.#idle.length > 0 || this.#busy.size < this.#threadsMax)) {
      const job = this.#queue.shift()
      if (job === undefined) return
      const thread = this.#idle.pop() ?? this.#start()
      job.thread = thread
      job.timer?.cancel()
      job.timer = this.#clock.after(this.#workMs, () => {
        this.#giveUp(job, refused('The regular expression takes too long here; use a simpler one, or fewer files.'))
      })
      this.#busy.set(thread, job)
      thread.postMessage(job.request)
    }
  }

  #start(): Worker {
    const thread = new Worker(new URL('./search-thread.ts', import.meta.url), { env: {} })
    thread.unref()
    thread.on('message', (reply: SearchReply | object) => {
      // Under `node --watch` Node itself sends messages from every thread.
      if (!('ok' in reply)) return
      const job = this.#busy.get(thread)
      if (job === undefined) return
      this.#busy.delete(thread)
      this.#idle.push(thread)
      if (reply.ok) job.settle({ hits: reply.hits })
      else job.settle({ error: refused(`The pattern is not valid: ${reply.reason}.`) })
      this.#next()
    })
    thread.on('error', (cause) => {
      const job = this.#busy.get(thread)
      if (job !== undefined) this.#giveUp(job, new AppError('tool_failed', 'The search failed.', { cause }))
    })
    return thread
  }

  /** A running search can be stopped only by terminating its thread; a new thread is started when it is needed. */
  #giveUp(job: Job, error: unknown): void {
    const { thread } = job
    const waiting = this.#queue.indexOf(job)
    if (waiting !== -1) this.#queue.splice(waiting, 1)
    if (thread !== undefined && this.#busy.get(thread) === job) {
      this.#busy.delete(thread)
      void thread.terminate()
    }
    job.settle({ error })
    this.#next()
  }
}

function tooBusy(): AppError {
  return refused('Too many searches are under way. Try again later.')
}
