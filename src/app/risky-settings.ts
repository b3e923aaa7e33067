// Warnings for the log about settings that are allowed but weaken the default protection.

import type { Config } from './config.ts'

export function riskySettings({ auth, corsOrigins, allowedHosts, bash }: Config): string[] {
  if (auth.mode !== 'open') return []
  const what = bash === 'off' ? 'read and change everything here' : 'read and change everything here, and run commands'
  const pages = `in open mode every web page that a browser on this machine shows can ${what}`
  return [
    ...(corsOrigins.includes('*') ? [`POLYLOG_CORS_ORIGINS is *: ${pages}; name the origins of your pages.`] : []),
    ...(allowedHosts.includes('*') ? [`POLYLOG_ALLOWED_HOSTS is *: ${pages}; name the hosts.`] : []),
  ]
}
