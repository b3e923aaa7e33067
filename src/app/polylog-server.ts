// A server as the program that runs it sees it.

export type PolylogServer = {
  /** Where it listens, such as `http://127.0.0.1:3000`. Throws before `listen`. */
  readonly url: string
  /** The model that answers if a request names none. */
  readonly defaultModel: string
  /** Listens, goes on with unfinished runs, and resolves with the URL. */
  listen(): Promise<string>
  /** Refuses new runs and ends streams; unfinished runs go on at the next start. May be called without `listen`. */
  close(): Promise<void>
}
