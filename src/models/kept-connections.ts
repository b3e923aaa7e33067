// The `fetch` that keeps its connections to providers open. Node's own closes a connection that was idle for 4 seconds, and a
// person needs longer for the next question, so each would begin with a new TLS handshake.
//
// It has no time limits of its own, because a model may think for minutes before its first word. A run ends a request that
// says nothing for too long.

import type { Agent } from 'undici'
import { defined } from '../kit/defined.ts'

/** Shorter than the idle time after which providers and most routers close a connection. */
const keepAliveTimeout = 60_000

const options = { keepAliveTimeout, headersTimeout: 0, bodyTimeout: 0 } satisfies Agent.Options

export type Fetch = typeof globalThis.fetch

type Environment = Record<string, string | undefined>

/** Whether the proxies of the environment are to be used; Node's own `fetch` asks the same. */
export function usesProxies(environment: Environment): boolean {
  return environment.NODE_USE_ENV_PROXY === '1'
}

export function keptFetch(environment: Environment = {}): Fetch {
  let opened: Promise<Fetch> | undefined
  return async (input, init) => {
    opened ??= openFetch(environment)
    const ask = await opened
    return await ask(input, init)
  }
}

async function openFetch(environment: Environment): Promise<Fetch> {
  const { Agent, EnvHttpProxyAgent, fetch } = await import('undici')
  const dispatcher = usesProxies(environment)
    ? new EnvHttpProxyAgent({ ...options, ...proxiesOf(environment) })
    : new Agent(options)
  // The package and Node declare the same interfaces, each for itself.
  const ask = fetch as unknown as (input: unknown, init: object) => Promise<Response>
  return (input, init) => ask(input, { ...init, dispatcher })
}

function proxiesOf(environment: Environment): { httpProxy?: string; httpsProxy?: string; noProxy?: string } {
  return defined({
    httpProxy: environment.http_proxy ?? environment.HTTP_PROXY,
    httpsProxy: environment.https_proxy ?? environment.HTTPS_PROXY,
    noProxy: environment.no_proxy ?? environment.NO_PROXY,
  })
}
