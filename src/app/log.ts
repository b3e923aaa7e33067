// Creates the log: JSON lines, or readable lines on a terminal. It redacts credentials in
// every logged object, also deep inside an error of a library, so that callers do not have
// to do it.

import { fstatSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino'
import type PinoPretty from 'pino-pretty'
import type { LogLevel } from './config.ts'

export type Log = Logger

const secretNames = [
  'authorization',
  'Authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'x-api-key',
  'X-API-Key',
  'x-goog-api-key',
  'api-key',
  'apiKey',
  'apiKeys',
  'password',
  'secret',
  'appSecret',
  'app_secret',
  'jwtSecret',
  'token',
  'tenant_access_token',
  'openclawToken',
  'openaiApiKey',
  'anthropicApiKey',
  'googleApiKey',
]

/** Errors of HTTP libraries hold headers three levels down (err.request.headers), and none is known to nest deeper. */
const depths = ['', '*.', '*.*.', '*.*.*.']

const redactedPaths = depths.flatMap((depth) =>
  secretNames.map((name) => (/^\w+$/.test(name) ? `${depth}${name}` : `${depth.slice(0, -1)}["${name}"]`)),
)

type LogDestination = DestinationStream & { isTTY?: boolean | undefined }

/**
 * Stdout, for a process that is only the server. Lines that cannot be written are lost, because the reader of the log is gone
 * or its disk is full; that must not end the runs.
 */
export function expendableStdout(): LogDestination {
  const { stdout } = process
  if (!fstatSync(stdout.fd).isFile()) {
    // The command line ends when its reader leaves; the server does not.
    return stdout.removeAllListeners('error').on('error', () => undefined)
  }
  return {
    // Not through the stream, which writes nothing more after an error: the disk may have room again.
    write(line) {
      try {
        writeSync(stdout.fd, line)
      } catch {
        // There is no place left to say it.
      }
    },
  }
}

export function createLog(options: {
  level: LogLevel
  /** Defaults to stdout. */
  destination?: LogDestination
}): Log {
  const destination = options.destination ?? process.stdout
  const settings: LoggerOptions = {
    level: options.level,
    redact: { paths: redactedPaths, censor: '(hidden)' },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  }
  if (destination.isTTY !== true) return pino(settings, destination)
  // Loaded here, because it takes two dozen files and most servers do not log to a terminal.
  const pretty = createRequire(import.meta.url)('pino-pretty') as typeof PinoPretty
  const readable = pretty({
    colorize: true,
    sync: true,
    ignore: 'pid,hostname,reqId',
    translateTime: 'SYS:HH:MM:ss.l',
    destination: destination as NodeJS.WritableStream,
  })
  return pino(settings, readable)
}
