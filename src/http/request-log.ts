// The log of a request, with the id of the request in every line. Most requests log nothing, and a child
// of the log costs more than routing the request, so it is made for the first line.

import type { FastifyBaseLogger } from 'fastify'

type ChildOptions = Parameters<FastifyBaseLogger['child']>

export class RequestLog implements FastifyBaseLogger {
  private readonly parent: FastifyBaseLogger
  private readonly bindings: ChildOptions[0]
  private readonly options: ChildOptions[1]
  private made: FastifyBaseLogger | undefined

  constructor(parent: FastifyBaseLogger, bindings: ChildOptions[0], options?: ChildOptions[1]) {
    this.parent = parent
    this.bindings = bindings
    this.options = options
  }

  private get log(): FastifyBaseLogger {
    this.made ??= this.parent.child(this.bindings, this.options)
    return this.made
  }

  get level(): string {
    return this.log.level
  }

  // Methods and not getters: Fastify looks at each of them for every request, and a getter would make the child then.
  fatal(...line: unknown[]): void {
    this.log.fatal(...(line as [string]))
  }

  error(...line: unknown[]): void {
    this.log.error(...(line as [string]))
  }

  warn(...line: unknown[]): void {
    this.log.warn(...(line as [string]))
  }

  info(...line: unknown[]): void {
    this.log.info(...(line as [string]))
  }

  debug(...line: unknown[]): void {
    this.log.debug(...(line as [string]))
  }

  trace(...line: unknown[]): void {
    this.log.trace(...(line as [string]))
  }

  silent(...line: unknown[]): void {
    this.log.silent(...(line as [string]))
  }

  child(...options: ChildOptions): FastifyBaseLogger {
    return this.log.child(...options)
  }
}
