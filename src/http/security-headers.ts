// The security headers of every answer. They are the same for all answers, so they are a
// constant. They are set on the reply and not on the raw response, because node:http keeps
// what is set there as long as a stream is open.

import type { FastifyReply, FastifyRequest } from 'fastify'

/** A content security policy is set where pages are served. */
const securityHeaders = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-site',
  'origin-agent-cluster': '?1',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
  'x-content-type-options': 'nosniff',
  'x-dns-prefetch-control': 'off',
  'x-download-options': 'noopen',
  'x-frame-options': 'SAMEORIGIN',
  'x-permitted-cross-domain-policies': 'none',
  // The filters of old browsers could be used against pages.
  'x-xss-protection': '0',
} as const

export function setSecurityHeaders(_request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  reply.headers(securityHeaders)
  done()
}
