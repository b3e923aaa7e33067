// /v1/contacts/import and /export: contacts as vCard and CSV files. The body of an import is
// the file itself; its content type says which of the two it is.

import { Readable } from 'node:stream'
import { z } from 'zod'
import type { ContactFormat } from '../../contacts/contact-files.ts'
import { csvLimits } from '../../contacts/csv.ts'
import { vcardLimits } from '../../contacts/vcard.ts'
import { AppError } from '../../errors/app-error.ts'
import { inertTextPolicy } from '../inert-text.ts'
import { callerOf, errorBody, type Server, type Services, userIdQuery } from '../routes.ts'
import { callerKey } from '../caller-key.ts'
import { UploadBudget } from '../uploads.ts'

const formatOfType: Readonly<Record<string, ContactFormat>> = {
  'text/vcard': 'vcard',
  'text/x-vcard': 'vcard',
  'text/directory': 'vcard',
  'text/csv': 'csv',
}

/** How contacts are sent to a client in each format. */
const files = {
  vcard: { type: 'text/vcard; charset=utf-8', name: 'contacts.vcf' },
  csv: { type: 'text/csv; charset=utf-8', name: 'contacts.csv' },
} as const

const fileBytesMax = Math.max(vcardLimits.bytes, csvLimits.bytes)

/** So many files of the largest size are read at the same time, or more smaller ones. */
const concurrentLargestFiles = 4

const reportView = z
  .object({
    created: z.number(),
    updated: z.number(),
    unchanged: z.number().describe('Contacts that have all of this already.'),
    skipped: z
      .array(z.object({ index: z.number(), line: z.number(), name: z.string().optional(), reason: z.string() }))
      .describe('Cards or rows that were not imported: the index counts them from 0, the line is that of the file.'),
    skippedTotal: z.number().describe('How many were skipped, also if `skipped` does not list all of them.'),
  })
  .meta({ id: 'ContactImportReport' })

export async function contactFileRoutes(server: Server, services: Services): Promise<void> {
  const { contactFiles } = services
  const budget = new UploadBudget(concurrentLargestFiles * fileBytesMax)

  server.get(
    '/v1/contacts/export',
    {
      schema: {
        tags: ['Contacts'],
        summary: 'All your contacts as one file',
        querystring: userIdQuery.extend({
          format: z.enum(['vcard', 'csv']).default('vcard'),
          version: z.enum(['3.0', '4.0']).default('3.0').describe('Of the vCards.'),
        }),
        // No schema for 200: the reply is a file, not JSON.
        response: { 400: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      const { format, version } = request.query
      return await reply
        .header('content-disposition', `attachment; filename="${files[format].name}"`)
        .header('content-security-policy', inertTextPolicy)
        .type(files[format].type)
        .send(Readable.from(contactFiles.export(userId, format, version)) as never)
    },
  )

  // A scope of its own, so that these content types are accepted here and nowhere else.
  await server.register(async (scope) => {
    scope.addContentTypeParser(
      Object.keys(formatOfType),
      { parseAs: 'buffer', bodyLimit: fileBytesMax },
      async (_request: unknown, body: unknown) => body,
    )
    scope.addContentTypeParser('*', (_request, _payload, done) => done(wrongType()))

    ;(scope as unknown as Server).post(
      '/v1/contacts/import',
      {
        bodyLimit: fileBytesMax,
        schema: {
          tags: ['Contacts'],
          summary: 'Import contacts from a vCard or CSV file',
          description:
            'The body is the file, with the content type `text/vcard` or `text/csv` (with `; charset=…` if it is not UTF-8). An entry changes the contact with its id or UID, else with its email, else with its name, unless another UID, email or phone tells them apart; it creates a contact if there is none. The same file twice creates nothing twice.',
          querystring: userIdQuery,
          response: { 200: reportView, 400: errorBody, 409: errorBody, 413: errorBody, 415: errorBody, 503: errorBody },
        },
      },
      async (request) => {
        const { userId } = callerOf(request, services)
        const [type = '', ...parameters] = (request.headers['content-type'] ?? '').toLowerCase().split(';')
        const format = formatOfType[type.trim()]
        const bytes: unknown = request.body
        if (format === undefined || !(bytes instanceof Uint8Array)) throw wrongType()
        const release = budget.reserve(callerKey(request), bytes.byteLength)
        try {
          return await contactFiles.import(userId, { format, bytes, charset: charsetOf(parameters) })
        } finally {
          release()
        }
      },
    )
  })
}

function charsetOf(parameters: readonly string[]): string | undefined {
  for (const parameter of parameters) {
    const charset = /^\s*charset="?([^"\s]+)"?\s*$/.exec(parameter)?.[1]
    if (charset !== undefined) return charset
  }
  return undefined
}

function wrongType(): AppError {
  return new AppError(
    'unsupported_media_type',
    'Send the file as the body, with the content type text/vcard or text/csv.',
  )
}
