// Decodes the bytes of an AG-UI event stream into events. Pure: no socket, no clock. Frames
// are bounded; one that is no JSON object ends the turn, because what it held is lost.

import { StringDecoder } from 'node:string_decoder'
import { createParser, type EventSourceParser } from 'eventsource-parser'
import { AppError } from '../../errors/app-error.ts'
import { isDeeperThan } from '../../kit/json-depth.ts'

const frameCharsMax = 4 * 1024 * 1024
const depthMax = 100
/** Of one remote run, far above any real answer with its framing. */
const bytesMax = 512 * 1024 * 1024

export type RemoteEvent = { readonly type: string; readonly [name: string]: unknown }

export class EventDecoder {
  private readonly text = new StringDecoder('utf8')
  private readonly parser: EventSourceParser
  private events: RemoteEvent[] = []
  private failure: AppError | undefined
  private bytes = 0

  constructor() {
    this.parser = createParser({
      maxBufferSize: frameCharsMax,
      onEvent: ({ data }) => this.frame(data),
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') this.fail('one event of its stream is longer than 4 MiB')
      },
    })
  }

  /** The events of these bytes, up to the first malformed frame. */
  feed(bytes: Buffer): RemoteEvent[] {
    if (this.failure !== undefined) return []
    this.bytes += bytes.length
    if (this.bytes > bytesMax) this.fail('its stream is longer than 512 MiB')
    else this.parser.feed(this.text.write(bytes))
    return this.events.splice(0)
  }

  /** Events of a last frame that lacks its blank line. */
  end(): RemoteEvent[] {
    if (this.failure === undefined) this.parser.feed(`${this.text.end()}\n\n`)
    return this.events.splice(0)
  }

  /** Throws if the stream was malformed. To be called after the events of `feed` were used. */
  check(): void {
    if (this.failure !== undefined) throw this.failure
  }

  private frame(data: string): void {
    // Some servers send an empty frame, or `[DONE]` as OpenAI does.
    if (this.failure !== undefined || data === '' || data === '[DONE]') return
    // A frame of that depth has at least this length; short frames are almost all of them.
    if (data.length > depthMax * 2 && isDeeperThan(data, depthMax)) {
      this.fail(`an event of its stream is nested deeper than ${depthMax} levels`)
      return
    }
    let event: unknown
    try {
      event = JSON.parse(data)
    } catch {
      this.fail('an event of its stream is not valid JSON')
      return
    }
    if (typeof event !== 'object' || event === null || typeof (event as { type?: unknown }).type !== 'string') {
      this.fail('an event of its stream has no type')
      return
    }
    this.events.push(event as RemoteEvent)
  }

  private fail(what: string): void {
    this.failure ??= new AppError('engine_failed', `The remote agent does not speak AG-UI as expected: ${what}.`)
  }
}
