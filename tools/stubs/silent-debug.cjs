// Stands in for `debug`, of which oclif makes a dozen loggers at every start; svc has --debug.
const silent = () => {}
silent.enabled = false
silent.extend = () => silent
const debug = () => silent
debug.enabled = () => false
debug.enable = silent
debug.disable = silent
module.exports = debug
module.exports.default = debug
