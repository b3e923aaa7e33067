// `current_time`: the current date and time in a time zone. It reads the clock of the run,
// so that tests can set the time.

import { quoted, textField } from './excerpt.ts'
import type { Tool } from './tool.ts'

export function createCurrentTimeTool(): Tool {
  return {
    name: 'current_time',
    description: 'Tells the current date and time, in UTC or in the given time zone.',
    effect: 'read',
    confirm: 'never',
    inputSchema: {
      type: 'object',
      properties: {
        timezone: {
          type: 'string',
          maxLength: 100,
          description: 'An IANA time zone such as Asia/Shanghai. UTC when absent.',
        },
      },
      additionalProperties: false,
    },
    timeoutMs: 5_000,
    outputCharsMax: 1_000,
    describe(input) {
      const zone = textField(input, 'timezone')
      return zone === '' ? 'Look up the current time' : `Look up the current time in ${zone}`
    },
    async run(input, context) {
      const zone = textField(input, 'timezone') || 'UTC'
      const now = context.now()
      const local = localTime(now, zone)
      if (local === null) {
        const message = `There is no time zone ${quoted(zone)}. Use an IANA name such as Europe/Berlin.`
        return { ok: false, output: { error: message }, summary: message }
      }
      return {
        ok: true,
        output: { utc: new Date(now).toISOString(), timezone: zone, local: local.iso, weekday: local.weekday },
        summary: `It is ${local.weekday}, ${local.iso.slice(0, 16).replace('T', ' ')} (${zone}).`,
      }
    },
  }
}

function localTime(epochMs: number, timeZone: string): { iso: string; weekday: string } | null {
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      weekday: 'long',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      timeZoneName: 'longOffset',
    })
  } catch {
    return null // a RangeError: unknown time zone
  }
  const part = Object.fromEntries(format.formatToParts(epochMs).map(({ type, value }) => [type, value]))
  // `GMT+08:00`, or plain `GMT` if the offset is zero.
  const offset = part.timeZoneName?.slice('GMT'.length) || '+00:00'
  return {
    iso: `${part.year}-${part.month}-${part.day}T${part.hour}:${part.minute}:${part.second}${offset}`,
    weekday: part.weekday ?? '',
  }
}
