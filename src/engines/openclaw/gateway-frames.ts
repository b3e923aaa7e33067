// The frames of the OpenClaw gateway protocol, read defensively: the gateway is another
// program, so a frame may be huge, deep or of any shape. Whatever does not fit is no frame.

import { isDeeperThan } from '../../kit/json-depth.ts'
import { isRecord } from '../../kit/is-record.ts'

/** The gateway's own limit for one frame is 25 MiB. */
export const frameCharsMax = 26 * 1024 * 1024
const frameDepthMax = 100

export type Fields = { readonly [name: string]: unknown }

export type GatewayFrame =
  | { type: 'res'; id: string; ok: boolean; payload: unknown; error: GatewayErrorFields }
  | { type: 'event'; event: string; payload: Fields; seq: number | undefined }

export type GatewayErrorFields = { code: string; message: string }

/** Undefined if the text is not a frame of this protocol. */
export function readFrame(text: string): GatewayFrame | undefined {
  if (text.length > frameCharsMax || isDeeperThan(text, frameDepthMax)) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  const frame = fieldsOf(value)
  if (frame['type'] === 'event') {
    const event = textOf(frame['event'])
    return event === ''
      ? undefined
      : { type: 'event', event, payload: fieldsOf(frame['payload']), seq: wholeOf(frame['seq']) }
  }
  if (frame['type'] !== 'res') return undefined
  const id = textOf(frame['id'])
  if (id === '') return undefined
  const error = fieldsOf(frame['error'])
  return {
    type: 'res',
    id,
    ok: frame['ok'] === true,
    payload: frame['payload'],
    error: { code: textOf(error['code']), message: textOf(error['message']).slice(0, 500) },
  }
}

const noFields: Fields = {}

/** The fields of an object; none if the value is not an object. */
export function fieldsOf(value: unknown): Fields {
  return isRecord(value) ? value : noFields
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A whole number that is not negative. */
export function wholeOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}
