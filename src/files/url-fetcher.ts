// Fetches a file that a message names by URL, only from hosts that the operator allows. The name is resolved once,
// and the connection goes to the address that was checked, so a name cannot point to a private address
// after the check. Redirects are not followed, and no cookies or credentials are sent.

import { lookup as resolveName } from 'node:dns/promises'
import { isIP } from 'node:net'
import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'
import { nodeHttp, nodeHttps } from '../kit/node-http.ts'
import { isPrivateAddress } from '../kit/private-address.ts'
import type { AllowedHosts } from './allowed-hosts.ts'
import type { NewFile } from './new-file.ts'

export type UrlFetcherOptions = {
  allowed: AllowedHosts
  clock: Pick<Clock, 'after'>
  bytesMax: number
  timeoutMs?: number
  /** The addresses of a name. */
  resolve?: (name: string) => Promise<string[]>
}

const timeoutMsDefault = 20_000
const urlCharsMax = 4096

/** Throws `file_url_refused` or `file_too_large`. */
export async function fetchFile(given: string, options: UrlFetcherOptions): Promise<NewFile> {
  const url = given.length > urlCharsMax ? null : URL.parse(given)
  const allowed = url === null ? undefined : options.allowed.find(url)
  if (url === null || allowed === undefined) {
    throw refused(
      'This server does not fetch this URL. Send the file as base64 or a data URL, or upload it with POST /v1/files.',
    )
  }
  const address = await addressOf(url, allowed.names, options)
  return await download(url, address, options)
}

async function addressOf(url: URL, names: boolean, { resolve = systemResolve }: UrlFetcherOptions): Promise<string> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // The operator's list has this very address, so it is meant.
  if (isIP(host) !== 0) return host
  const addresses = await resolve(host).catch(() => [])
  const isMeant = names && host === 'localhost'
  const usable = isMeant ? addresses : addresses.filter((address) => !isPrivateAddress(address))
  const [first] = usable
  if (first === undefined) {
    throw refused(
      addresses.length === 0
        ? `The host ${host} was not found.`
        : `The host ${host} has only private addresses, from which nothing is fetched.`,
    )
  }
  return first
}

async function systemResolve(name: string): Promise<string[]> {
  return (await resolveName(name, { all: true })).map(({ address }) => address)
}

function download(url: URL, address: string, options: UrlFetcherOptions): Promise<NewFile> {
  const { bytesMax, clock, timeoutMs = timeoutMsDefault } = options
  const { promise, resolve, reject } = Promise.withResolvers<NewFile>()
  const family = isIP(address)
  const request = (url.protocol === 'https:' ? nodeHttps : nodeHttp).get(url, {
    // A new connection each time: a pooled one could belong to another address of the same name.
    agent: false,
    headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'polylog' },
    // Node asks for one address or for a list.
    lookup: (_name, { all }, done) => {
      if (all === true) done(null, [{ address, family }])
      else done(null, address, family)
    },
  })
  const fail = (error: AppError) => {
    reject(error)
    request.destroy()
  }
  const timer = clock.after(timeoutMs, () => fail(refused(`${url.host} did not send the file in time.`)))
  request.on('error', () => reject(refused(`${url.host} could not be reached.`)))
  request.on('response', (response) => {
    if (response.statusCode !== 200) {
      const redirects = (response.statusCode ?? 0) >= 300 && (response.statusCode ?? 0) < 400
      return fail(
        refused(
          redirects
            ? `${url.host} redirects to another URL, which is not followed.`
            : `${url.host} answered with the status ${response.statusCode}.`,
        ),
      )
    }
    if (Number(response.headers['content-length']) > bytesMax) return fail(tooLarge(bytesMax))
    const chunks: Buffer[] = []
    let size = 0
    response.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > bytesMax) fail(tooLarge(bytesMax))
      else chunks.push(chunk)
    })
    response.on('error', () => reject(refused(`${url.host} closed the connection too early.`)))
    response.on('end', () => {
      const name = url.pathname.split('/').at(-1)
      resolve({ bytes: Buffer.concat(chunks, size), mediaType: response.headers['content-type'], name })
    })
  })
  return promise.finally(() => timer.cancel())
}

function tooLarge(bytesMax: number): AppError {
  return new AppError('file_too_large', `A file may have at most ${bytesMax} bytes; the one at the URL has more.`)
}

function refused(sentence: string): AppError {
  return new AppError('file_url_refused', sentence)
}
