// The name under which requests are limited: that of the login, or the address of the client.

import type { FastifyRequest } from 'fastify'
import { addressKey } from './failed-logins.ts'

export function callerKey({ login, ip }: Pick<FastifyRequest, 'login' | 'ip'>): string {
  return login === null ? `ip:${addressKey(ip)}` : `user:${login.userId}`
}
