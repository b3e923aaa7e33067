// How the console is built: into dist/, with hashed names for everything but index.html. The client is compiled from its
// sources, so the console always fits the server of the same clone.

import { fileURLToPath } from 'node:url'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const clientSources = fileURLToPath(new URL('../client/src', import.meta.url))

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  resolve: {
    alias: [
      { find: /^@polylog\/client$/, replacement: `${clientSources}/index.ts` },
      { find: /^@polylog\/client\/(.+)$/, replacement: `${clientSources}/$1.ts` },
    ],
  },
  build: {
    target: 'es2023',
    // The content security policy allows files of this server only, so nothing becomes a data URL.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // scripts/ensure-console.ts builds into a new folder and moves it to dist/ when it is complete.
    emptyOutDir: true,
    reportCompressedSize: false,
  },
  // `npx vite console` shows changes at once, with the API of a server on the usual port.
  server: {
    proxy: Object.fromEntries(['/v1', '/api', '/docs', '/openapi.json'].map((path) => [path, 'http://127.0.0.1:3000'])),
  },
})
