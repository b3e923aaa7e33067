// The server inside of another program: it starts a server on a free port, asks it
// something, prints the answer and stops.

import { createPolylog, defineTool, z } from 'polylog'

const toss = defineTool({
  name: 'toss_coins',
  description: 'Tosses coins.',
  input: z.object({ count: z.number().int().min(1).max(100) }),
  effect: 'read',
  execute: ({ count }) => Array.from({ length: count }, () => (Math.random() < 0.5 ? 'heads' : 'tails')),
})

const server = await createPolylog({
  port: 0,
  data: process.env.EXAMPLE_DATA ?? 'data/embedded',
  log: 'warn',
  demo: 'on',
  model: 'demo/demo',
  tools: [toss],
})
await server.listen()
try {
  const response = await fetch(`${server.url}/v1/agent/chat?format=vercel-ai`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ input: 'use the tool toss_coins with {"count": 3}' }),
  })
  for await (const part of response.body ?? []) process.stdout.write(part)
} finally {
  await server.close()
}
