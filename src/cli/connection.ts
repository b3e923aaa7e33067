// The options of commands that talk to a server, and the client that they make. A command asks a server as any other
// client does: it sees only what its user may see.

import type { Command } from 'commander'
import { createClient, type PolylogClient } from '../../client/src/client.ts'
import type { PolylogError } from '../../client/src/error.ts'
import { type ClientOptions, createTransport, type Transport } from '../../client/src/transport.ts'
import { CliError, type ExitName } from './exit-codes.ts'
import type { CliContext } from './context.ts'

export type ConnectionFlags = { url?: string; user?: string; token?: string; json?: boolean }

const defaultUrl = 'http://127.0.0.1:3000'
/** A person waits: a server that is not there is reported after about two seconds. */
const requestRetries = 2

export type ServerConnection = {
  readonly url: string
  readonly client: PolylogClient
  readonly transport: Transport
  /** For those that make their own client. */
  readonly options: ClientOptions
}

export function addConnectionOptions(command: Command): Command {
  return command
    .option('--url <url>', `the address of the server (default: POLYLOG_URL, or ${defaultUrl})`)
    .option('--user <id>', 'the user, if the server requires no login')
    .option('--token <token>', 'an API key or token (better: set POLYLOG_TOKEN, which other processes cannot see)')
    .option('--json', 'print JSON, one value on each line')
}

export function connectTo(
  flags: ConnectionFlags,
  { environment }: CliContext,
  changes: ClientOptions = {},
): ServerConnection {
  const url = flags.url ?? nonEmpty(environment['POLYLOG_URL']) ?? defaultUrl
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new CliError('usage', `${url} is not the address of a server: it has to begin with http:// or https://.`)
  }
  const token = flags.token ?? nonEmpty(environment['POLYLOG_TOKEN'])
  // Such a header cannot be sent, so the request would fail as if there were no server.
  if (token !== undefined && /[^\x20-\x7e]/.test(token.trim())) {
    throw new CliError('usage', 'The token has characters that no API key or token has. Was it copied whole?')
  }
  const options: ClientOptions = {
    baseUrl: url,
    requestRetries,
    ...(flags.user === undefined ? {} : { userId: flags.user }),
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
    ...changes,
  }
  return { url, options, client: createClient(options), transport: createTransport(options) }
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === '' ? undefined : text
}

/** How a command ends if the server refused its request, or if there is no server. */
export function failureOfRequest(error: PolylogError): { exit: ExitName; code: string; message: string } {
  const { code, status, message } = error
  if (status === 0)
    return { exit: 'cannotConnect', code, message: `${message} Is it running? Name it with --url or POLYLOG_URL.` }
  if (code === 'unexpected_response') {
    return { exit: 'cannotConnect', code, message: `${message} Is this the address of a Polylog server?` }
  }
  if (status === 401) return { exit: 'failed', code, message: `${message} Set POLYLOG_TOKEN to an API key or a token.` }
  return { exit: status === 404 ? 'notFound' : status === 400 ? 'usage' : 'failed', code, message }
}
