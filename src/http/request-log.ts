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

  get fatal(): FastifyBaseLogger['fatal'] {
    return this.log.fatal.bind(this.log)
  }

  get error(): FastifyBaseLogger['error'] {
    return this.log.error.bind(this.log)
  }

  get warn(): FastifyBaseLogger['warn'] {
    return this.log.warn.bind(this.log)
  }

  get info(): FastifyBaseLogger['info'] {
    return this.log.info.bind(this.log)
  }

  get debug(): FastifyBaseLogger['debug'] {
    return this.log.debug.bind(this.log)
  }

  get trace(): FastifyBaseLogger['trace'] {
    return this.log.trace.bind(this.log)
  }

  get silent(): FastifyBaseLogger['silent'] {
    return this.log.silent.bind(this.log)
  }

  child(...options: ChildOptions): FastifyBaseLogger {
    return this.log.child(...options)
  }
}
