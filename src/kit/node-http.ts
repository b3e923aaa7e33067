// Node's modules for HTTP, without its own fetch. An `import` of a value from node:http reads every export of the
// module, also WebSocket, which loads Node's copy of undici: 60 ms of CPU time, for classes that most servers never use. This
// does not. Types are imported from node:http as usual.

export const nodeHttp = process.getBuiltinModule('node:http')
export const nodeHttps = process.getBuiltinModule('node:https')
