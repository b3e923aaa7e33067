// The root of the package. In a clone it is the TypeScript of src/, which Node runs as it is;
// in the published package it is what scripts/build.ts made of it. Both are the same module
// that the server itself uses.

import { existsSync } from 'node:fs'

const source = new URL('./src/index.ts', import.meta.url)
const root = await import(existsSync(source) ? source.href : new URL('./dist/index.js', import.meta.url).href)

export const { createPolylog, defineConfig, defineTool, ToolError, z } = root
