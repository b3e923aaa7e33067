// An MCP server over stdio. One tool returns an image, a PDF, a file of an unknown type and a link. The other has arguments
// with names as in OData, and returns its arguments.

import { type CallToolResult, Server } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { pdf, pngOf } from '../support/sample-files.ts'

serveStdio(() => {
  const server = new Server({ name: 'pictures', version: '1.0.0' }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', () => ({
    tools: [
      {
        name: 'take_picture',
        description: 'Takes a picture.',
        annotations: { readOnlyHint: true },
        inputSchema: { type: 'object', properties: {} },
      },
      {
        name: 'query_records',
        description: 'Finds records.',
        annotations: { readOnlyHint: true },
        inputSchema: {
          type: 'object',
          properties: {
            $filter: { type: 'string' },
            paging: { type: 'object', properties: { $top: { type: 'integer' } }, required: ['$top'] },
          },
          required: ['$filter'],
          additionalProperties: false,
        },
      },
    ],
  }))
  server.setRequestHandler('tools/call', ({ params }): CallToolResult => {
    if (params.name === 'query_records') return { content: [{ type: 'text', text: JSON.stringify(params.arguments) }] }
    return picture
  })
  return server
})

const picture: CallToolResult = {
  content: [
    { type: 'text', text: 'A picture:' },
    { type: 'image', mimeType: 'image/png', data: pngOf(7).toString('base64') },
    {
      type: 'resource',
      resource: { uri: 'file:///tmp/report.pdf', mimeType: 'application/pdf', blob: pdf.toString('base64') },
    },
    { type: 'resource', resource: { uri: 'file:///a.bin', blob: Buffer.from([0, 1, 2]).toString('base64') } },
    { type: 'resource_link', name: 'more', uri: 'https://pictures.example/more' },
  ],
}
