// How commands end, for scripts. A failure that a person can fix is a CliError with one sentence.

export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  cannotConnect: 4,
  checkFailed: 5,
} as const

export type ExitName = keyof typeof exitCodes

export class CliError extends Error {
  readonly exit: ExitName
  /** A stable name of the failure, for `--json`: the code of the server's answer, if there was one. */
  readonly code: string

  constructor(exit: ExitName, message: string, code: string = exit) {
    super(message)
    this.name = 'CliError'
    this.exit = exit
    this.code = code
  }
}
