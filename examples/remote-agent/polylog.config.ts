// A server with a tool in code and an agent that runs elsewhere. In this folder:
//
//   export WEATHER_AGENT_AUTH="Bearer secret"
//   npx node weather-agent.ts &
//   npx polylog
//
// Then, in another terminal: AGENT=weather npx node ../chat.ts "warn everybody of the storm"

import { defineConfig, defineTool, z } from 'polylog'

const rollDice = defineTool({
  name: 'roll_dice',
  description: 'Rolls dice and tells the sum.',
  input: z.object({ count: z.number().int().min(1).max(10) }),
  effect: 'read',
  execute: ({ count }) => ({
    sum: Array.from({ length: count }, () => 1 + Math.floor(Math.random() * 6)).reduce((a, b) => a + b),
  }),
})

export default defineConfig({
  agents: ['./agents'],
  tools: [rollDice],
})
