// Runs before every npm script, on the machine's own Node: installs the locked packages
// (including the project's own Node) if they are missing or older than the lock file. It
// must stay plain JavaScript that Node 18 can run.
'use strict'
const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

const root = path.join(__dirname, '..')
const lock = path.join(root, 'package-lock.json')
const marker = path.join(root, 'node_modules', '.package-lock.json')
const ownNode = path.join(root, 'node_modules', '.bin', process.platform === 'win32' ? 'node.cmd' : 'node')

function modified(file) {
  try {
    return fs.statSync(file).mtimeMs
  } catch {
    return 0
  }
}

function ownNodeRuns() {
  try {
    const version = execFileSync(ownNode, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    return Number(version.slice(1).split('.')[0]) >= 24
  } catch {
    return false
  }
}

// A production install (npm ci --omit=dev) has no Node of its own; a new enough
// system Node serves as well.
const systemNodeIsNew = Number(process.versions.node.split('.')[0]) >= 24
// `npm ci` empties the folder behind a link, which belongs to another checkout that may be in use.
const modules = path.join(root, 'node_modules')
const isLink = fs.existsSync(modules) && fs.lstatSync(modules).isSymbolicLink()
const fresh = modified(marker) > 0 && modified(marker) >= modified(lock)

if (isLink) {
  if (!fresh) process.stderr.write('node_modules is a link and may not fit the lock file; it is left as it is.\n')
} else if (!fresh || (!ownNodeRuns() && !systemNodeIsNew)) {
  process.stderr.write('Installing packages (first start, or the lock file changed)…\n')
  // Output goes to stderr, so that stdout stays the server's or the tests' own.
  const npm = process.env.npm_execpath
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  const options = { cwd: root, stdio: ['ignore', 2, 2] }
  if (npm) execFileSync(process.execPath, [npm].concat(args), options)
  else execFileSync('npm', args, options)
  // npm may keep an older time on the marker than the lock file has after a fresh clone.
  const now = new Date()
  if (fs.existsSync(marker)) fs.utimesSync(marker, now, now)
}
