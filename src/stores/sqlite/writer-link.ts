// The requests to the writer thread, and what it has not answered yet. It answers in the order of the requests.

import type { Worker } from 'node:worker_threads'
import type { CommandBatch, WriterRequest } from './commands.ts'
import { rangesOf } from './log-record.ts'
import type { LoggedBatch } from './logged-batches.ts'
import type { Pending } from './pending-command.ts'

export type Writer = Pick<Worker, 'on' | 'postMessage'>

/** What the writer is working on: a batch, if any, after batches from the log. `synced`: no power cut can lose it after the commit. */
type Posted = { batch: Pending[] | undefined; logged: readonly LoggedBatch[]; synced: boolean }

const nothingPosted: Posted = { batch: undefined, logged: [], synced: false }

export class WriterLink {
  readonly #writer: Writer
  /** What the writer has, in order. It has at most one batch. */
  readonly #posted: Posted[] = []
  #isClosePosted = false

  constructor(writer: Writer) {
    this.#writer = writer
  }

  /** The writer has commands of the log. */
  get hasLogged(): boolean {
    return this.#posted.some(({ logged }) => logged.length > 0)
  }

  get isClosePosted(): boolean {
    return this.#isClosePosted
  }

  /** `values`: the commands of the batch; `durable`: they need a sync. */
  post(posted: Posted, values: CommandBatch['values'], durable: boolean): void {
    const { logged } = posted
    const request: CommandBatch = { durable, values }
    const last = logged.at(-1)
    if (last !== undefined) {
      const records = rangesOf(logged.map(({ record }) => record))
      request.logged = { after: (logged[0] as LoggedBatch).number - 1, number: last.number, records }
    } else {
      // If these commands fail, the batch may not be executed before they are tried again.
      const earlier = this.#posted.findLast(({ logged }) => logged.length > 0)?.logged.at(-1)
      if (earlier !== undefined) request.needsLog = earlier.number
    }
    this.#posted.push(posted)
    this.#writer.postMessage(request)
  }

  /** Takes what the writer has just answered. */
  takeAnswered(): Posted {
    return this.#posted.shift() ?? nothingPosted
  }

  postClose(): void {
    this.#isClosePosted = true
    this.#writer.postMessage('close' satisfies WriterRequest)
  }
}
