// Recognizes replies that consent to a tool call. Only an unambiguous yes counts; every
// other reply is a rejection, and its text becomes the reason.

import type { JsonValue } from '../journal/event.ts'

/** Longer than any consent below with its punctuation. Bounded because a reply may be as long as a request body. */
const consentCharsMax = 20

const consent =
  /^(?:yes|y|ok|okay|true|confirm|confirmed|approve|approved|allow|accept|是|好|好的|同意|确认|可以)\s*[.!。!]?$/i

/** The fields in which front ends send a decision as an object. */
const decisionFields = ['confirmed', 'confirm', 'approved', 'value'] as const

export function agrees(response: JsonValue): boolean {
  if (response === true) return true
  if (typeof response === 'string') {
    const said = response.trim()
    return said.length <= consentCharsMax && consent.test(said)
  }
  if (typeof response !== 'object' || response === null || Array.isArray(response)) return false
  return decisionFields.some((name) => response[name] === true)
}

/** A reply that is neither consent nor a rejection was meant for something else. */
export function isDecision(response: JsonValue): boolean {
  if (typeof response === 'boolean' || typeof response === 'string') return true
  if (typeof response !== 'object' || response === null || Array.isArray(response)) return false
  return decisionFields.some((name) => typeof response[name] === 'boolean')
}
