// The server as a program of its own, without the command line: for process managers and tests.

import { serve } from './serve.ts'

await serve()
