// Recognises addresses that are not on the public internet: this machine, private networks, link-local
// addresses (which include the metadata services of clouds), and addresses for special uses.

import { BlockList, isIP } from 'node:net'

const networks = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  networks.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  // Also ::1 and, in older notation, IPv4 addresses.
  ['::', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const)
  networks.addSubnet(network, bits, 'ipv6')

/** True also for what is not an IP address. An IPv4 address that is mapped into IPv6 counts as that IPv4 address. */
export function isPrivateAddress(address: string): boolean {
  const version = isIP(address)
  return version === 0 || networks.check(address, version === 4 ? 'ipv4' : 'ipv6')
}
