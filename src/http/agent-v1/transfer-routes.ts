// GET /v1/agent/runs/:runId/export and POST /v1/import: an ended run as one document, and back. `polylog export` and
// `polylog import` use them for whole conversations.

import { Readable } from 'node:stream'
import { z } from 'zod'
import { documentFormat, documentText, eventsMax } from '../../runs/run-document.ts'
import { inlineOutputCharsMax } from '../../runs/stored-output.ts'
import { parseInTurns } from '../json-in-turns.ts'
import type { JsonLimits } from '../json-limits.ts'
import { callerOf, errorBody, idParam, ownRun, type Server, type Services, userIdQuery } from '../routes.ts'
import { readRawFile, UploadBudget, withUploads } from '../uploads.ts'

/** The body of an import: a document, or a file in base64. */
export function importBytesMax(uploadBytes: number): number {
  return Math.ceil((uploadBytes * 4) / 3) + 64 * 1024
}

/** What an export can write fits: journals nest values up to 100 levels deep, inside the levels of the document. */
function importLimits(bytes: number): JsonLimits {
  return {
    depth: 128,
    // A journal of short text deltas has 15 bytes for each value, one of lists of small numbers three.
    values: Math.ceil(bytes / 4),
    entries: eventsMax,
    // A tool chooses the field names of its output.
    keyChars: inlineOutputCharsMax,
  }
}

/** Parsing a document takes several times its size. */
const concurrentLargestImports = 2

const importResult = z
  .object({
    outcome: z.enum(['imported', 'unchanged']).describe('unchanged: it was here already.'),
    runId: z.string().nullable(),
    conversationId: z.string().nullable(),
    fileId: z.string().nullable(),
  })
  .meta({ id: 'ImportResult' })

const fileDocument = z.object({
  file: z.object({
    id: z.string().regex(/^file_[0-7][0-9A-HJKMNP-TV-Z]{25}$/),
    name: z.string().max(200).nullable(),
    mediaType: z.string().max(200),
  }),
  base64: z.base64(),
})

export async function transferRoutes(server: Server, services: Services): Promise<void> {
  const { transfer, settings } = services

  server.get(
    '/v1/agent/runs/:runId/export',
    {
      schema: {
        tags: ['Agent'],
        summary: 'An ended run as one document, for POST /v1/import of another server',
        description:
          'Its journal, messages, questions and long tool outputs, with all ids. Left out are system prompts, working directories and the state of providers. Files are not part of it; the document names their ids.',
        params: z.object({ runId: idParam }),
        querystring: userIdQuery,
        response: {
          200: z.unknown().meta({ description: 'The document, version 1.' }),
          404: errorBody,
          409: errorBody,
          413: errorBody,
        },
      },
    },
    async (request, reply) => {
      const document = await transfer.export(await ownRun(request, services, request.params.runId))
      // The document is written as it is: a schema would cost more than the rest.
      return reply.header('content-type', 'application/json; charset=utf-8').send(Readable.from(documentText(document)))
    },
  )

  const fileBytes = importBytesMax(settings.uploadBytes)
  const limits = importLimits(fileBytes)
  const budget = new UploadBudget(concurrentLargestImports * fileBytes)
  await withUploads(server, (scope) => {
    // A document has more values than other JSON bodies may have, so the handler reads it.
    scope.removeContentTypeParser('application/json')
    scope.addContentTypeParser('application/json', (_request, _payload, done) => done(null, undefined))
    scope.post(
      '/v1/import',
      {
        config: { admitsBodyItself: true },
        schema: {
          tags: ['Agent'],
          summary: 'Import a run that GET /v1/agent/runs/{runId}/export gave, or a file that it refers to',
          description: `The run belongs to you and keeps its ids, so every stream of it has the same bytes as before. The body is the document (\`"format": "${documentFormat}"\`), or \`{"file": {"id", "name"}, "base64"}\`. Import files first. Importing again changes nothing; if something else has one of the ids, the answer is import_conflict.`,
          querystring: userIdQuery,
          response: {
            200: importResult,
            400: errorBody,
            404: errorBody,
            409: errorBody,
            413: errorBody,
            503: errorBody,
          },
        },
      },
      async (request, reply) => {
        const { userId } = callerOf(request, services)
        return await readRawFile(request, reply, { fileBytes, budget }, async (bytes) => {
          const given = await parseInTurns(bytes.toString('utf8'), limits)
          const file = fileDocument.safeParse(given)
          if (file.success) {
            const { id, name, mediaType } = file.data.file
            const content = Buffer.from(file.data.base64, 'base64')
            const row = await services.files.describe(userId, { bytes: content, name: name ?? undefined, mediaType })
            return {
              outcome: await transfer.importFile({ ...row, id }, content),
              fileId: id,
              runId: null,
              conversationId: null,
            }
          }
          return { ...(await transfer.import(userId, given)), fileId: null }
        })
      },
    )
  })
}
