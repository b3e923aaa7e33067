// /v1/files: files that messages can refer to. The object of a file has the fields of the OpenAI
// API, too, so that its client libraries can upload, list and delete.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { NewFile } from '../../files/new-file.ts'
import { fileKind } from '../../journal/media-type.ts'
import { isoTime } from '../../kit/clock.ts'
import type { FileRow } from '../../stores/file-store.ts'
import { inertTextPolicy } from '../inert-text.ts'
import { linkNext } from '../next-link.ts'
import { callerOf, errorBody, idParam, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import { readFiles, readRawFile, UploadBudget, withUploads } from '../uploads.ts'
import { ms, time } from '../views.ts'

const fileParams = z.object({ fileId: idParam })

export const fileView = z
  .object({
    id: z.string(),
    object: z.literal('file'),
    name: z.string().nullable(),
    mediaType: z.string().describe('As found in the bytes.'),
    size: z.number().describe('In bytes.'),
    sha256: z.string(),
    createdAt: time,
    createdAtMs: ms,
    bytes: z.number().describe('The same as size.'),
    filename: z.string().describe('The name; the id if it has none.'),
    created_at: z.number().describe('Epoch seconds.'),
    purpose: z.literal('user_data'),
  })
  .meta({ id: 'File' })

function toFileView(row: FileRow): z.infer<typeof fileView> {
  const { id, name, mediaType, size, sha256, createdAt } = row
  return {
    id,
    object: 'file',
    name,
    mediaType,
    size,
    sha256,
    createdAt: isoTime(createdAt),
    createdAtMs: createdAt,
    bytes: size,
    filename: name ?? id,
    created_at: Math.floor(createdAt / 1000),
    purpose: 'user_data',
  }
}

/** How many uploads of the largest size are read at the same time. */
const concurrentLargestFiles = 4

export async function fileRoutes(server: Server, services: Services): Promise<void> {
  const { files, settings, clock } = services
  const fileBytes = settings.uploadBytes
  const budget = new UploadBudget(concurrentLargestFiles * fileBytes)

  await withUploads(server, (scope) => {
    // Any other body is the file itself, also one that is JSON. The handler reads it.
    scope.removeContentTypeParser('application/json')
    scope.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined))

    scope.post(
      '/v1/files',
      {
        config: { admitsBodyItself: true },
        schema: {
          tags: ['Files'],
          summary: 'Upload a file',
          description:
            'As multipart/form-data with the file in the field `file`, or with the file as the body. The type is found in the bytes. A message refers to the file with `{"type": "file", "fileId": …}`. The same file twice has the same id.',
          querystring: userIdQuery.extend({
            name: z.string().max(500).optional().describe('The name of the file, if it is the body.'),
          }),
          consumes: ['multipart/form-data', 'application/octet-stream'],
          response: { 200: fileView, 400: errorBody, 413: errorBody, 415: errorBody, 503: errorBody },
        },
      },
      async (request, reply) => {
        const { userId } = callerOf(request, services)
        const put = async (file: NewFile) => toFileView(await files.put(userId, file))
        if (!request.isMultipart()) {
          const { name } = request.query
          const mediaType = request.headers['content-type']
          return await readRawFile(request, reply, { fileBytes, budget }, (bytes) => put({ bytes, name, mediaType }))
        }
        return await readFiles(request, reply, { fileBytes, filesMax: 1, budget, clock }, async (sent) => {
          const file = sent.get('file')
          if (file === undefined) {
            throw new AppError('upload_part_missing', 'The form has no file in the field "file".')
          }
          return await put(file)
        })
      },
    )
  })

  server.get(
    '/v1/files',
    {
      schema: {
        tags: ['Files'],
        summary: 'Your files, newest first',
        querystring: userIdQuery.extend({
          limit: z.coerce.number().int().min(1).max(1000).default(100),
          after: optionalFilter().describe('Only files that come after the one with this id.'),
        }),
        response: {
          200: z.object({ object: z.literal('list'), data: z.array(fileView), has_more: z.boolean() }),
          400: errorBody,
        },
      },
    },
    async (request, reply) => {
      const { limit, after } = request.query
      const { userId } = callerOf(request, services)
      const { rows, more } = await files.list(userId, { limit, before: after })
      if (more) linkNext(request, reply, { after: rows.at(-1)?.id ?? '' })
      reply.header('cache-control', 'no-store')
      return { object: 'list' as const, data: rows.map(toFileView), has_more: more }
    },
  )

  const download = {
    params: fileParams,
    querystring: userIdQuery,
    // No schema for 200: the reply is a file, not JSON.
    response: { 404: errorBody },
  }

  server.get(
    '/v1/files/:fileId',
    {
      schema: {
        tags: ['Files'],
        summary: 'A file: its bytes',
        description: 'A request with `Accept: application/json` gets the object of the file instead.',
        ...download,
      },
    },
    async (request, reply) => {
      const row = await files.get(callerOf(request, services), request.params.fileId)
      if (request.headers.accept?.trim().toLowerCase() !== 'application/json') return await sendBytes(reply, row)
      return await reply.header('cache-control', 'no-store').send(toFileView(row) as never)
    },
  )

  server.get(
    '/v1/files/:fileId/content',
    { schema: { tags: ['Files'], summary: 'The bytes of a file', ...download } },
    async (request: FastifyRequest<{ Params: z.infer<typeof fileParams> }>, reply) =>
      await sendBytes(reply, await files.get(callerOf(request, services), request.params.fileId)),
  )

  server.delete(
    '/v1/files/:fileId',
    {
      schema: {
        tags: ['Files'],
        summary: 'Delete a file that no message refers to',
        params: fileParams,
        querystring: userIdQuery,
        response: {
          200: z.object({ id: z.string(), object: z.literal('file'), deleted: z.literal(true) }),
          404: errorBody,
          409: errorBody,
        },
      },
    },
    async (request) => {
      const { fileId } = request.params
      await files.delete(callerOf(request, services), fileId)
      return { id: fileId, object: 'file' as const, deleted: true as const }
    },
  )

  async function sendBytes(reply: FastifyReply, row: FileRow): Promise<FastifyReply> {
    const { bytes } = await files.read(row.owner, row.id)
    return await reply
      .header('content-disposition', disposition(row))
      .header('content-security-policy', inertTextPolicy)
      // The content of an id never changes, but the id may be deleted.
      .header('cache-control', 'private, no-cache')
      .header('x-content-type-options', 'nosniff')
      .type(fileKind(row.mediaType) === 'text' ? `${row.mediaType}; charset=utf-8` : row.mediaType)
      .send(bytes)
  }
}

/** Only media that cannot run scripts is shown in place; text may be HTML or SVG. */
function disposition({ name, id, mediaType }: FileRow): string {
  const kind = fileKind(mediaType)
  const how = kind === 'image' || kind === 'audio' || kind === 'video' ? 'inline' : 'attachment'
  const shown = name ?? id
  const plain = shown.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  return `${how}; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(shown).replace(/['()*]/g, escaped)}`
}

function escaped(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
