// The envelope of FCMP/1.0 and its validation. The dialect drops an envelope that does not
// match the schema before it assigns a seq, so every sent envelope is valid and the seq has
// no gaps.

import { createRequire } from 'node:module'
import type { ValidateFunction } from 'ajv'
import type * as AjvModule from 'ajv/dist/2020.js'
import type FormatsModule from 'ajv-formats'
import schema from './fcmp-event-envelope.schema.json' with { type: 'json' }

export type FcmpEnvelope = {
  readonly protocol_version: 'fcmp/1.0'
  readonly run_id: string
  readonly seq: number
  readonly ts: string
  readonly engine: string
  readonly type: FcmpType
  readonly data: Readonly<Record<string, unknown>>
  readonly meta: { readonly attempt: number }
}

export type FcmpType =
  | 'conversation.started'
  | 'conversation.state.changed'
  | 'assistant.message.final'
  | 'user.input.required'
  | 'interaction.reply.accepted'
  | 'interaction.auto_decide.timeout'
  | 'conversation.completed'
  | 'conversation.failed'
  | 'diagnostic.warning'

export type Violation = { readonly path: string; readonly message: string }

let compiled: ValidateFunction | undefined

/** Compiles the schema for the first envelope: most servers send none, and Ajv takes as many files as a tenth of the server. */
function compiledSchema(): ValidateFunction {
  if (compiled !== undefined) return compiled
  const load = createRequire(import.meta.url)
  const { Ajv2020 } = load('ajv/dist/2020.js') as typeof AjvModule
  const addFormats = load('ajv-formats') as typeof FormatsModule
  // The schema is ours, and a test checks it against its meta-schema. To compile that one takes longer than all the rest of this file.
  const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true, validateSchema: false })
  addFormats.default(ajv)
  compiled = ajv.compile(schema)
  return compiled
}

/** The first schema violation of an envelope, or null if it is valid. */
export function violationOf(envelope: unknown): Violation | null {
  const fits = compiledSchema()
  if (fits(envelope)) return null
  const error = fits.errors?.[0]
  return { path: error?.instancePath ?? '', message: error?.message ?? 'does not fit the schema' }
}
