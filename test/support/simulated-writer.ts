// The writer thread of SQLite as the commit queue sees it: what it was sent is kept, and it says what the test says.

import assert from 'node:assert/strict'
import type { CommandBatch } from '../../src/stores/sqlite/commands.ts'
import type { Writer } from '../../src/stores/sqlite/writer-link.ts'
import { valuesOfRecords } from '../../src/stores/sqlite/log-record.ts'

export class SimulatedWriter {
  readonly sent: (CommandBatch | 'close')[] = []
  private readonly listeners = new Map<string, (message: unknown) => void>()

  on(event: string, listener: (message: unknown) => void): this {
    this.listeners.set(event, listener)
    return this
  }

  postMessage(request: CommandBatch | 'close'): void {
    this.sent.push(request)
  }

  /** For the commit queue, which knows it as a thread. */
  get asWriter(): Writer {
    return this as unknown as Writer
  }

  emit(event: 'message' | 'error' | 'exit', message: unknown): void {
    this.listeners.get(event)?.(message)
  }

  say(message: object): void {
    this.emit('message', message)
  }

  /** The batch that was sent was executed. */
  done(reply: object = {}): void {
    this.say({ type: 'done', failures: [], results: [], folded: [], ...reply })
  }

  batchAt(index: number): CommandBatch {
    const batch = this.sent[index]
    assert.ok(batch !== undefined && batch !== 'close', `${index} of ${this.sent.length}`)
    return batch
  }

  /** The commands of a batch that were acknowledged from the log, a list for each record. */
  loggedAt(index: number): CommandBatch['values'][] {
    const { logged } = this.batchAt(index)
    return logged === undefined ? [] : logged.records.flatMap((range) => [...valuesOfRecords(range)])
  }
}
