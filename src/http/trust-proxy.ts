// Decides which proxies are trusted to report the address of a client. Each proxy appends
// the address that it saw to X-Forwarded-For. So with n trusted proxies only the last n
// entries are reliable; the client can forge everything before them.

import { BlockList, isIP } from 'node:net'

/** No proxy, the number of proxies, or their addresses and networks. */
export type TrustProxy = false | number | readonly string[]

type TrustFunction = (address: string, hop: number) => boolean

/** Networks from which no client on the internet can connect. */
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
 * The value for Fastify's `trustProxy`. A number of proxies does not say who the direct peer is: a client that connects
 * directly could forge its address. So with a number, the direct peer must be in a private network. Proxies with public
 * addresses must be listed.
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
