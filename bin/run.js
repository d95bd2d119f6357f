#!/usr/bin/env node
// Plain old syntax: this file must run on any Node, if only to say that it is too old.
var wanted = [24, 7]
var path = require('path')
var fs = require('fs')

var found = process.versions.node.split('.').map(Number)
if (found[0] > wanted[0] || (found[0] === wanted[0] && found[1] >= wanted[1])) {
  start()
} else {
  handOver()
}

function start() {
  delete process.env.SVC_HANDED_OVER
  var program = path.join(__dirname, '..', 'dist', 'main.cjs')
  if (!fs.existsSync(program)) {
    fail('svc is not built here', 'npm run build')
    return
  }
  cacheCompiledCode()
  var svc
  try {
    svc = require(program)
  } catch (error) {
    cannotStart(error)
    return
  }
  svc.main(svc.processIo(), process.argv.slice(2)).catch(function (error) {
    // What goes wrong later, the program reports.
    if (!isShortage(error)) throw error
    cannotStart(error)
  })
}

// A file of the program itself that cannot be opened now, or is damaged.
function cannotStart(error) {
  var reason = String(error && error.message).split('\n')[0]
  if (error && error.code === 'EMFILE') reason = 'it has too many files open (ulimit -n, LimitNOFILE=)'
  if (isShortage(error)) fail('svc cannot be started: ' + reason, 'Run the command again.')
  else fail('svc is damaged: ' + reason, 'Install svc again, or in a checkout: npm run build')
}

function isShortage(error) {
  return /^E[A-Z]+$/.test(String(error && error.code))
}

function fail(message, hint) {
  process.exitCode = 12
  // Without a listener Node ends the program by itself, with another exit code, when nobody can read this.
  process.stderr.on('error', function () {})
  process.stderr.write('Error: ' + message + '\n  ' + hint + '\n')
}

// Node's default place for compiled code is one folder in /tmp for everybody: the first user locks
// out all others, and whoever makes it first feeds code to the rest. Ours is the user's own.
function cacheCompiledCode() {
  if (process.env.NODE_DISABLE_COMPILE_CACHE || process.env.NODE_COMPILE_CACHE) return
  try {
    // As os.homedir has it, without loading os.
    var home = (process.platform !== 'win32' && process.env.HOME) || require('os').homedir()
    var base =
      process.platform === 'win32'
        ? process.env.LOCALAPPDATA || path.join(home, 'AppData', 'Local')
        : process.platform === 'darwin'
          ? path.join(home, 'Library', 'Caches')
          : process.env.XDG_CACHE_HOME || path.join(home, '.cache')
    if (!path.isAbsolute(base)) return
    var folder = path.join(base, 'svc', 'compiled')
    // Not recursive: below /proc and its like Node would try for ever.
    ;[base, path.join(base, 'svc'), folder].forEach(function (each) {
      if (!fs.existsSync(each)) fs.mkdirSync(each, 448) // 0700
    })
    var stat = fs.lstatSync(folder)
    var mine = process.platform === 'win32' || (stat.uid === process.getuid() && (stat.mode & 18) === 0) // 0022
    if (stat.isDirectory() && mine) require('module').enableCompileCache(folder)
  } catch (_) {
    // No cache folder: slower, nothing else.
  }
}

// A checkout brings a Node of its own as a development dependency: hand over to it when it is there.
function handOver() {
  var exe = process.platform === 'win32' ? 'node.exe' : 'node'
  var own = path.join(__dirname, '..', 'node_modules', 'node', 'bin', exe)
  if (process.env.SVC_HANDED_OVER || !fs.existsSync(own)) {
    fail(
      'svc needs Node ' + wanted.join('.') + ' or newer; this is Node ' + process.versions.node,
      'Install a current Node (https://nodejs.org), or run npm ci in a checkout of svc.'
    )
    return
  }
  var env = Object.assign({}, process.env, { SVC_HANDED_OVER: '1' })
  var child = require('child_process').spawn(own, [__filename].concat(process.argv.slice(2)), {
    stdio: 'inherit',
    env: env,
  })
  // The terminal sends ctrl-C to both; this process only waits for the other's answer to it.
  process.on('SIGINT', function () {})
  ;['SIGTERM', 'SIGHUP'].forEach(function (signal) {
    process.on(signal, function () {
      child.kill(signal)
    })
  })
  child.on('error', function (error) {
    fail('cannot run ' + own + ': ' + error.message, 'Run npm ci again.')
  })
  child.on('exit', function (code, signal) {
    var numbers = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGKILL: 137 }
    process.exitCode = signal ? numbers[signal] || 1 : code
  })
}
