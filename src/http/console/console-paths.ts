// The addresses of the console's pages. Each is answered with the same page, which shows the view that its address names.
// Addresses outside this list stay what they are: an unknown one is a JSON 404.

/** The first part of an address; what follows it belongs to the page. */
const consolePages = ['chat', 'runs', 'wires', 'arena', 'agents', 'jobs', 'inbox', 'contacts', 'operations'] as const

export const consolePaths: readonly string[] = ['/', ...consolePages.flatMap((page) => [`/${page}`, `/${page}/*`])]

/** Where the scripts, styles and pictures of the console are. Their names have a hash of their content. */
export const consoleAssets = '/assets/*'
