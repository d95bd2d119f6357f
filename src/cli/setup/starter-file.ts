/**
 * A svc.yaml to begin with where discovery recognizes no service. It is valid, and its only monitor fails until
 * somebody edits it: a file that checks nothing must not turn a gate green.
 */
export const starterFile = (head: readonly string[]): string => `${head.map((line) => `# ${line}\n`).join('')}types:
  # The type decides the name under which the answer appears: App, Sql, Ftp, Batch, Identity, Mongo and others.
  App:
    # Edit this first: the URL of a page of yours. Until then this monitor fails, because .invalid never exists.
    - kind: http
      name: web
      url: https://change-me.invalid/

  # A database, with a password that stands in a file of mode 0600 and not here:
  # Sql:
  #   - kind: postgres
  #     name: orders
  #     url: postgres://monitor@db1.example.com/orders
  #     password: {file: /run/credentials/svc/orders-db}

  # A port that must accept connections:
  # Batch:
  #   - kind: tcp
  #     name: queue
  #     host: queue.example.com
  #     port: 5672

# Every kind and its settings: svc monitors kinds
# After every change: svc monitors validate && svc health
`
