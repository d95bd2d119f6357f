#!/usr/bin/env bash
# Telegraf's parser for Nagios plugins turns two of the five forms of a range into others.
#
# Expected before the run: `~:10` begins at 5e-324 (claimed by a colleague); of `@10:20` there was no guess. Most people
# expect -Inf, or no lower bound, and a range that begins at 10.
#
# Seen on 2026-11-30 with Telegraf 1.37.2: `~:10` (alert above 10) has the lower bound 5e-324, the smallest positive number,
# so that 0 and -5 are "below". `@10:20` (alert within 10 to 20) has 0 and 20. `10`, `10:` and `-40:10` are as written.
#
# Needs go. Fails if the version, the behaviour or the output changes.
set -euo pipefail
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cd "$home"

export GOPATH=$home/go GOCACHE=$home/cache GOFLAGS='-mod=mod -modcacherw'
cat >main.go <<'GO'
package main

import (
	"fmt"
	"runtime/debug"
	"sort"

	"github.com/influxdata/telegraf/plugins/parsers/nagios"
)

func main() {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "github.com/influxdata/telegraf" {
			fmt.Println("version", module.Version)
		}
	}
	parser := &nagios.Parser{}
	for _, limit := range []string{"10", "10:", "-40:10", "~:10", "@10:20"} {
		metrics, err := parser.Parse([]byte("OK - fine | temperature=-5;" + limit + "\n"))
		if err != nil {
			panic(err)
		}
		fields := metrics[0].Fields()
		names := []string{}
		for name := range fields {
			if name != "value" {
				names = append(names, name)
			}
		}
		sort.Strings(names)
		fmt.Print(limit)
		for _, name := range names {
			fmt.Print(" ", name, "=", fields[name])
		}
		fmt.Println()
	}
}
GO
{
  go mod init finding
  go get github.com/influxdata/telegraf/plugins/parsers/nagios@v1.37.2
  go build -o parse .
} >log 2>&1 || cat log
./parse | tee seen

diff - seen <<'EXPECTED' && echo 'as described'
version v1.37.2
10 warning_gt=10 warning_lt=0
10: warning_gt=1.7976931348623157e+308 warning_lt=10
-40:10 warning_gt=10 warning_lt=-40
~:10 warning_gt=10 warning_lt=5e-324
@10:20 warning_ge=20 warning_le=0
EXPECTED
