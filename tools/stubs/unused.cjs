// Stands in for packages that oclif loads for its look around the disk, which svc does not do.
module.exports = new Proxy(
  {},
  {
    get(_, name) {
      if (name === '__esModule' || typeof name === 'symbol') return undefined
      return () => {
        throw new Error(`left out of the bundle: ${name}`)
      }
    },
  },
)
