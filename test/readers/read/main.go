// Readers in Go: the parsers of Telegraf, VictoriaMetrics and Prometheus, by the name in the first argument.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"sort"
	"strings"

	victoria "github.com/VictoriaMetrics/VictoriaMetrics/lib/protoparser/prometheus"
	"github.com/influxdata/telegraf/plugins/parsers/nagios"
	telegraf "github.com/influxdata/telegraf/plugins/parsers/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

type summary struct {
	Tests   float64            `json:"tests"`
	Failed  float64            `json:"failed"`
	Skipped float64            `json:"skipped"`
	Alerts  []string           `json:"alerts"`
	Figures map[string]float64 `json:"figures"`
	Error   string             `json:"error,omitempty"`
}

type sample struct {
	name   string
	labels map[string]string
	value  float64
}

const prometheusModule = "github.com/prometheus/prometheus"

var readers = map[string]struct {
	module string
	read   func(text []byte) (summary, error)
}{
	"telegraf-nagios":     {"github.com/influxdata/telegraf", telegrafNagios},
	"telegraf-prometheus": {"github.com/influxdata/telegraf", ofSamples(telegrafPrometheus)},
	"victoriametrics":     {"github.com/VictoriaMetrics/VictoriaMetrics", ofSamples(victoriaMetrics)},
	"prometheus":          {prometheusModule, ofSamples(prometheus)},
	"promlint":            {"github.com/prometheus/client_golang", ofSamples(linted)},
}

func main() {
	reader := readers[os.Args[1]]
	files, err := os.ReadDir(os.Args[2])
	if err != nil {
		panic(err)
	}
	runs := map[string]summary{}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(os.Args[2], file.Name()))
		if err != nil {
			panic(err)
		}
		seen, err := reader.read(text)
		if err != nil {
			seen = summary{Error: err.Error()}
		}
		sort.Strings(seen.Alerts)
		runs[file.Name()] = seen
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"version": version(reader.module), "runs": runs})
}

func version(module string) string {
	build, _ := debug.ReadBuildInfo()
	for _, one := range build.Deps {
		if one.Path == module {
			// The modules of Prometheus 3.16 are called 0.316.
			version := strings.TrimPrefix(one.Version, "v")
			if module == prometheusModule {
				version = regexp.MustCompile(`^0\.3(\d\d)\b`).ReplaceAllString(version, "3.$1")
			}
			return version
		}
	}
	return ""
}

var count = regexp.MustCompile(`^(\w+ )?(failed|not_checked)$`)

// The bounds decide as alerts on these fields do: below the lower or above the upper one.
func telegrafNagios(text []byte) (summary, error) {
	parser := &nagios.Parser{}
	metrics, err := parser.Parse(text)
	seen := summary{Alerts: []string{}, Figures: map[string]float64{}}
	for _, metric := range metrics {
		label, isDatum := metric.GetTag("perfdata")
		if !isDatum {
			continue
		}
		field := func(name string, otherwise float64) float64 {
			if value, exists := metric.GetField(name); exists {
				return value.(float64)
			}
			return otherwise
		}
		value := field("value", math.NaN())
		seen.Figures[label] = value
		for _, level := range []string{"warning", "critical"} {
			if value < field(level+"_lt", math.Inf(-1)) || value > field(level+"_gt", math.Inf(1)) {
				seen.Alerts = append(seen.Alerts, label)
				break
			}
		}
		switch parts := count.FindStringSubmatch(label); {
		case parts == nil:
		case parts[2] == "failed":
			seen.Tests += field("max", 0)
			seen.Failed += value
		default:
			seen.Skipped += value
		}
	}
	return seen, err
}

func telegrafPrometheus(text []byte) ([]sample, error) {
	parser := &telegraf.Parser{MetricVersion: 2}
	metrics, err := parser.Parse(text)
	samples := []sample{}
	for _, metric := range metrics {
		for name, value := range metric.Fields() {
			samples = append(samples, sample{name, metric.Tags(), value.(float64)})
		}
	}
	return samples, err
}

func victoriaMetrics(text []byte) ([]sample, error) {
	var rows victoria.Rows
	var problems []error
	rows.UnmarshalWithErrLogger(string(text), func(problem string) { problems = append(problems, errors.New(problem)) })
	samples := []sample{}
	for _, row := range rows.Rows {
		tags := map[string]string{}
		for _, tag := range row.Tags {
			tags[tag.Key] = tag.Value
		}
		samples = append(samples, sample{row.Metric, tags, row.Value})
	}
	return samples, errors.Join(problems...)
}

// The parser of a scrape.
func prometheus(text []byte) ([]sample, error) {
	parser, err := textparse.New(text, "text/plain; version=0.0.4", nil, textparse.ParserOptions{})
	samples := []sample{}
	for err == nil {
		var entry textparse.Entry
		if entry, err = parser.Next(); err != nil || entry != textparse.EntrySeries {
			continue
		}
		var own labels.Labels
		parser.Labels(&own)
		_, _, value := parser.Series()
		tags := own.Map()
		samples = append(samples, sample{tags["__name__"], tags, value})
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return samples, err
}

// The linter of promtool, whose findings count as errors.
func linted(text []byte) ([]sample, error) {
	findings, err := promlint.New(strings.NewReader(string(text))).Lint()
	if err == nil && len(findings) > 0 {
		err = fmt.Errorf("%v", findings)
	}
	if err != nil {
		return nil, err
	}
	return prometheus(text)
}

func ofSamples(read func(text []byte) ([]sample, error)) func(text []byte) (summary, error) {
	return func(text []byte) (summary, error) {
		samples, err := read(text)
		seen := summary{Alerts: []string{}, Figures: map[string]float64{}}
		alerts := map[string]bool{}
		for _, one := range samples {
			parts := []string{}
			for _, name := range []string{"monitor", "check", "item"} {
				// An empty label is none; node_exporter gives them to the samples of a family that lack one.
				if part := one.labels[name]; part != "" {
					parts = append(parts, part)
				}
			}
			series := strings.Join(parts, "/")
			switch {
			case one.name == "svc_type_monitors":
				seen.Tests += one.value
				if one.labels["status"] == "failed" {
					seen.Failed += one.value
				}
				if one.labels["status"] == "not_checked" {
					seen.Skipped += one.value
				}
			case one.name == "svc_check_success" && one.value == 0, one.name == "svc_check_warning" && one.value == 1:
				alerts[series] = true
			case strings.HasPrefix(one.name, "svc_check_value") && !strings.Contains(one.name, "timestamp"):
				seen.Figures[series] = one.value
			}
		}
		for name := range alerts {
			seen.Alerts = append(seen.Alerts, name)
		}
		return seen, err
	}
}
