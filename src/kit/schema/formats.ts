// The values of `format` that are checked. Each check must take linear time, and texts are
// limited in length. Formats that are not listed here are ignored.

import { isIP } from 'node:net'
import { linearPattern } from './linear-pattern.ts'
import type { Steps } from './steps.ts'

/** Longer texts count as not having the format. */
const formatCharsMax = 2_048

const day = /^(\d{4})-(\d\d)-(\d\d)$/
const timeOfDay = /^(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:z|[+-](\d\d)(?::?(\d\d))?)$/i
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i
const durationForm = /^P(?!$)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)$/
const daysOfMonth = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

const formats: Readonly<Record<string, (text: string, steps: Steps) => boolean>> = {
  date: isDay,
  time: isTime,
  'date-time': isDateTime,
  duration: (text) => durationForm.test(text),
  email: isEmail,
  hostname: isHostname,
  ipv4: (text) => isIP(text) === 4,
  ipv6: (text) => isIP(text) === 6,
  uri: (text) => /^[a-z][a-z0-9+.-]*:/i.test(text) && hasUriCharacters(text) && URL.canParse(text),
  url: (text) => /^(?:https?|ftp):\/\//i.test(text) && hasUriCharacters(text) && URL.canParse(text),
  'uri-reference': (text) => hasUriCharacters(text) && URL.canParse(text, 'http://host/'),
  uuid: (text) => /^(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(text),
  'json-pointer': (text) => /^(?:\/(?:[^~/]|~[01])*)*$/.test(text),
  regex: isPattern,
}

/** True if the text has the format, or if the format is unknown. */
export function hasFormat(format: string, text: string, steps: Steps): boolean {
  if (!Object.hasOwn(formats, format)) return true
  return text.length <= formatCharsMax && (formats[format]?.(text, steps) ?? true)
}

function isPattern(text: string, steps: Steps): boolean {
  const { ok, cost } = linearPattern(text)
  steps.spend(cost)
  return ok
}

function isDay(text: string): boolean {
  const match = day.exec(text)
  if (match === null) return false
  const [year, month, date] = match.slice(1).map(Number) as [number, number, number]
  if (month < 1 || month > 12 || date < 1 || date > (daysOfMonth[month - 1] ?? 0)) return false
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return month !== 2 || date < 29 || leap
}

function isTime(text: string): boolean {
  const match = timeOfDay.exec(text)
  if (match === null) return false
  const [hour, minute, second, zoneHour, zoneMinute] = match.slice(1).map((part) => Number(part ?? 0))
  return hour! < 24 && minute! < 60 && second! <= 60 && zoneHour! < 24 && zoneMinute! < 60
}

function isDateTime(text: string): boolean {
  const at = text.search(/[t ]/i)
  return at > 0 && isDay(text.slice(0, at)) && isTime(text.slice(at + 1))
}

function isHostname(text: string): boolean {
  return text.length <= 253 && text.split('.').every((part) => label.test(part))
}

function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@')
  if (at < 1 || at > 64) return false
  return /^[^\s@"(),:;<>[\]\\]+$/.test(text.slice(0, at)) && isHostname(text.slice(at + 1))
}

function hasUriCharacters(text: string): boolean {
  return !/[^\u0021-\u007e]|["<>\\^`{|}]/.test(text)
}
