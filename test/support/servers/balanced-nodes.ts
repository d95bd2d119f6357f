/**
 * Sections for HAProxy, over plain HTTP: /healthcheck goes to the nodes whose /livez is 200, and everything else to those whose
 * /readyz is. What a node does not answer, or answers with 503, goes to another one. svc 0.1 answers no probe without Host.
 * `answerWithin` is the longest time for one answer of a node, `tries` how often a request is sent at most. `passes503`: a 503
 * for a request other than /healthcheck reaches the caller. Otherwise, HAProxy 2.6 closes the connection without an answer if no node is ready for another attempt.
 */
export const balancedNodes =
  (
    ports: readonly number[],
    {
      answerWithin = '30s',
      tries = 3,
      passes503 = false,
    }: { readonly answerWithin?: string; readonly tries?: number; readonly passes503?: boolean } = {},
  ) =>
  (port: number): string => {
    const servers = ports.map((own, n) => `  server node-${n} 127.0.0.1:${own}`).join('\n')
    const backend = (name: string, probe: string, repeats: string): string => `backend ${name}
  mode http
  timeout server ${answerWithin}
  timeout check 2s
  option redispatch
  option httpchk
  http-check send meth GET uri ${probe} ver HTTP/1.1 hdr Host 127.0.0.1
  http-check expect status 200
  default-server check inter 500ms fall 2 rise 1
  retries ${tries - 1}
  retry-on conn-failure empty-response response-timeout${repeats}
${servers}
`
    return `frontend web
  mode http
  bind 127.0.0.1:${port}
  http-request set-header Host 127.0.0.1
  use_backend health if { path_beg -i /healthcheck }
  default_backend sign-in

${backend('health', '/livez', ' 503')}
${backend('sign-in', '/readyz', passes503 ? '' : ' 503')}`
  }
