// Which proxies are believed about the address of a client. A proxy appends the address
// that it saw to X-Forwarded-For, so only as many entries from the right are true as
// there are proxies of ours; everything before them is what the client wrote.

import { BlockList, isIP } from 'node:net'

/** No proxy, the number of proxies, or their addresses and networks. */
export type TrustProxy = false | number | readonly string[]

type TrustFunction = (address: string, hop: number) => boolean

/** Networks that no client on the internet can come from. */
const privateNetworks = new BlockList()
for (const [network, bits] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['169.254.0.0', 16],
  ['100.64.0.0', 10],
] as const)
  privateNetworks.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['::1', 128],
  ['fc00::', 7],
  ['fe80::', 10],
] as const)
  privateNetworks.addSubnet(network, bits, 'ipv6')

/**
 * As the HTTP server wants it. A number alone says nothing about who is at the other end of the connection: a client
 * that reaches the server directly could write its own address. So with a number, that end must be in a private network;
 * proxies with public addresses have to be named.
 */
export function trustedProxies(trust: TrustProxy): false | string[] | TrustFunction {
  if (trust === false) return false
  if (typeof trust === 'number') return (address, hop) => hop < trust && (hop > 0 || isPrivate(address))
  return [...trust]
}

function isPrivate(address: string): boolean {
  const version = isIP(address)
  return version !== 0 && privateNetworks.check(address, version === 4 ? 'ipv4' : 'ipv6')
}
