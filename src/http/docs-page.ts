// The API's own description as one HTML page that needs nothing: no script, no
// style sheet, no font from anywhere, so that it also works offline and under a
// strict content policy. Everything from the document is escaped.

import {
  type Components,
  type Field,
  type Schema,
  exampleOf,
  fieldsOf,
  resolveSchema,
  typeOf,
} from './openapi-fields.ts'

type Media = { schema?: Schema; example?: unknown }

export type Parameter = { name: string; in: string; required?: boolean; description?: string; schema?: Schema }

export type Operation = {
  tags?: string[]
  summary?: string
  description?: string
  deprecated?: boolean
  parameters?: Parameter[]
  requestBody?: { description?: string; required?: boolean; content?: Record<string, Media> }
  responses?: Record<string, { description?: string; content?: Record<string, Media> }>
}

/** As much of an OpenAPI 3 document as the page shows. */
export type OpenApiDocument = {
  info?: { title?: string; version?: string; description?: string }
  servers?: { url: string }[]
  tags?: { name: string; description?: string }[]
  paths?: Record<string, Record<string, Operation>>
  components?: Components
}

type Route = { method: string; path: string; id: string; operation: Operation }

const methods = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options']
const untagged = 'Other'

export function docsPage(openapi: OpenApiDocument): string {
  const title = openapi.info?.title ?? 'API'
  const groups = groupByTag(openapi)
  const navigation = [...groups].map(
    ([tag, routes]) =>
      `<li><a href="#${idOf(tag)}">${escape(tag)}</a><ul>${routes
        .map((route) => `<li><a href="#${route.id}"><b>${route.method}</b> ${escape(route.path)}</a></li>`)
        .join('')}</ul></li>`,
  )
  const sections = [...groups].map(([tag, routes]) => {
    const description = openapi.tags?.find((candidate) => candidate.name === tag)?.description
    return `<section id="${idOf(tag)}"><h2>${escape(tag)}</h2>${prose(description)}${routes
      .map((route) => routeBlock(route, openapi))
      .join('\n')}</section>`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<style>${style}</style>
</head>
<body>
<nav aria-label="Contents"><ul>${navigation.join('')}</ul></nav>
<main>
<h1>${escape(title)} <small>${escape(openapi.info?.version ?? '')}</small></h1>
${prose(openapi.info?.description)}
${sections.join('\n')}
</main>
</body>
</html>
`
}

/** Tags in the document's own order, then those it does not list, in order of appearance. */
function groupByTag(openapi: OpenApiDocument): Map<string, Route[]> {
  const groups = new Map<string, Route[]>((openapi.tags ?? []).map((tag) => [tag.name, []]))
  for (const [path, operations] of Object.entries(openapi.paths ?? {})) {
    for (const method of methods) {
      const operation = operations[method]
      if (operation === undefined) continue
      const tag = operation.tags?.[0] ?? untagged
      const route = { method: method.toUpperCase(), path, id: idOf(`${method}-${path}`), operation }
      groups.set(tag, [...(groups.get(tag) ?? []), route])
    }
  }
  for (const [tag, routes] of groups) if (routes.length === 0) groups.delete(tag)
  return groups
}

function routeBlock(route: Route, openapi: OpenApiDocument): string {
  const { operation } = route
  const components = openapi.components ?? {}
  const parameters = (operation.parameters ?? []).map((parameter) => ({
    path: `${parameter.name} (${parameter.in})`,
    type: typeOf(parameter.schema ?? {}, components),
    required: parameter.required === true,
    description: parameter.description ?? parameter.schema?.description ?? '',
  }))
  const bodies = Object.entries(operation.requestBody?.content ?? {}).map(([type, media]) =>
    block(
      `Request body <code>${escape(type)}</code>`,
      prose(operation.requestBody?.description) + schemaTable(media, components),
    ),
  )
  const responses = Object.entries(operation.responses ?? {}).map(([status, response]) => {
    const content = Object.entries(response.content ?? {})
    const types = content.map(([type]) => `<code>${escape(type)}</code>`).join(', ')
    const tables = content.map(([, media]) => schemaTable(media, components)).join('')
    const head = `<b>${escape(status)}</b> ${inline(response.description ?? '')} ${types}`
    return tables === '' ? `<p>${head}</p>` : `<details><summary>${head}</summary>${tables}</details>`
  })
  return `<article id="${route.id}">
<h3><span class="method ${route.method.toLowerCase()}">${route.method}</span> <code>${escape(route.path)}</code>${operation.deprecated === true ? ' <em>deprecated</em>' : ''}</h3>
${operation.summary === undefined ? '' : `<p class="summary">${inline(operation.summary)}</p>`}
${prose(operation.description)}
${parameters.length === 0 ? '' : block('Parameters', table(parameters))}
${bodies.join('')}
${responses.length === 0 ? '' : block('Responses', responses.join(''))}
${block('Example', `<pre><code>${escape(curl(route, openapi))}</code></pre>`)}
</article>`
}

function block(title: string, content: string): string {
  return `<h4>${title}</h4>${content}`
}

function schemaTable(media: Media, components: Components): string {
  if (media.schema === undefined) return ''
  const fields = fieldsOf(media.schema, components)
  if (fields.length > 0) return table(fields)
  const description = resolveSchema(media.schema, components).description
  return `<p><code>${escape(typeOf(media.schema, components))}</code> ${inline(description ?? '')}</p>`
}

function table(fields: Field[]): string {
  const rows = fields.map(
    (field) =>
      `<tr><td><code>${escape(field.path)}</code>${field.required ? ' <span class="required">required</span>' : ''}</td>` +
      `<td>${escape(field.type)}</td><td>${inline(field.description)}</td></tr>`,
  )
  return `<div class="wide"><table><thead><tr><th>Name</th><th>Type</th><th>Meaning</th></tr></thead><tbody>${rows.join('')}</tbody></table></div>`
}

export function curl(route: { method: string; path: string; operation: Operation }, openapi: OpenApiDocument): string {
  const components = openapi.components ?? {}
  const base = (openapi.servers?.[0]?.url ?? 'http://127.0.0.1:3000').replace(/\/$/, '')
  const parameters = route.operation.parameters ?? []
  const valueOf = (parameter: Parameter) => {
    const value = exampleOf(parameter.schema ?? {}, components)
    return value === '…' ? parameter.name.toUpperCase() : String(value)
  }
  let path = route.path
  for (const parameter of parameters) {
    if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, encodeURIComponent(valueOf(parameter)))
  }
  const query = parameters
    .filter((parameter) => parameter.in === 'query' && parameter.required === true)
    .map((parameter) => `${encodeURIComponent(parameter.name)}=${encodeURIComponent(valueOf(parameter))}`)
  const streams = Object.values(route.operation.responses ?? {}).some(
    (response) => response.content?.['text/event-stream'] !== undefined,
  )
  const lines = [
    `curl${streams ? ' -N' : ''}${route.method === 'GET' ? '' : ` -X ${route.method}`} ${shellQuoted(base + path + (query.length === 0 ? '' : `?${query.join('&')}`))}`,
  ]
  const json = route.operation.requestBody?.content?.['application/json']
  if (json !== undefined) {
    const example = json.example ?? exampleOf(json.schema ?? {}, components)
    lines.push(`-H 'Content-Type: application/json'`, `-d ${shellQuoted(JSON.stringify(example))}`)
  }
  return lines.join(' \\\n  ')
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function idOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '')
}

/** Paragraphs and `code` are all the markup that descriptions get. */
function prose(text: string | undefined): string {
  if (text === undefined || text.trim() === '') return ''
  return text
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => `<p>${inline(paragraph)}</p>`)
    .join('')
}

function inline(text: string): string {
  return escape(text).replace(/`([^`]+)`/g, '<code>$1</code>')
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

const style = `
:root { color-scheme: light dark; --line: light-dark(#d8dce2, #343a44); --soft: light-dark(#f4f6f8, #1b1f26); --accent: light-dark(#0b57d0, #8ab4f8) }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; color: light-dark(#1c2128, #e3e6eb); background: light-dark(#fff, #12151a); display: grid; grid-template-columns: minmax(0, 22rem) minmax(0, 1fr) }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem; border-right: 1px solid var(--line); font-size: .85rem }
nav ul { list-style: none; margin: 0 0 .8rem; padding: 0 } nav ul ul { padding-left: .8rem } nav b { font-size: .7rem }
nav a { overflow-wrap: anywhere }
main { padding: 1.5rem clamp(1rem, 4vw, 3rem) 4rem; max-width: 68rem }
a { color: var(--accent); text-decoration: none } a:hover, a:focus { text-decoration: underline }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line) } h3 { margin: 0; overflow-wrap: anywhere } h4 { margin: 1.2rem 0 .3rem }
article { border: 1px solid var(--line); border-radius: 8px; padding: 1rem 1.2rem; margin: 1.2rem 0 }
.method { font-size: .75rem; padding: .15rem .5rem; border-radius: 4px; color: #fff; background: #475569 }
.get { background: #1d6f42 } .post { background: #0b57d0 } .delete { background: #b3261e } .put, .patch { background: #8a4b00 }
.summary { font-weight: 600; margin: .4rem 0 } .required { color: light-dark(#b3261e, #f2b8b5); font-size: .75rem }
code, pre { font: .88em/1.45 ui-monospace, monospace; background: var(--soft); border-radius: 4px } code { padding: .1em .3em }
pre { padding: .8rem; overflow: auto } pre code { padding: 0 }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line) }
summary { cursor: pointer }
@media (max-width: 800px) { body { display: block } nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line) } }
`
