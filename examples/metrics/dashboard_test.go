package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// The dashboard is one by Grafana's schema: a field that this does not have, or
// one of another type, is an error. No two panels lie on each other.
func TestDashboardKeepsTheSchema(t *testing.T) {
	board := readDashboard(t)
	require.Empty(t, faults(t, readFile(t)))
	require.NoError(t, board.Validate())
	require.Equal(t, dashboard.NewDashboard().SchemaVersion, board.SchemaVersion)
	ids, cells := map[uint32]bool{}, map[[2]uint32]bool{}
	for _, p := range panels(t, board) {
		require.False(t, ids[*p.Id], "%s: the id is another's", *p.Title)
		ids[*p.Id] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			require.Less(t, x, uint32(24), *p.Title)
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.False(t, cells[[2]uint32{x, y}], "%s lies on another panel", *p.Title)
				cells[[2]uint32{x, y}] = true
			}
		}
	}
}

// The schema is able to refuse.
func TestSchemaCanary(t *testing.T) {
	for fault, edit := range map[string][2]string{
		"Dashboard: unexpected field 'refreshing'":                                         {`"refresh":`, `"refreshing":`},
		"panels[0].gridPos.h: required field is missing":                                   {`, "h": 8}`, `}`},
		"panels[0].options.legend.showLegend: required field is null":                      {`"showLegend": true`, `"showLegend": null`},
		"panels[0].targets[0].Dataquery: unexpected field 'legend'":                        {`"legendFormat"`, `"legend"`},
		"panels[0].fieldConfig.defaults.custom.GraphFieldConfig: unexpected field 'style'": {`"drawStyle"`, `"style"`},
	} {
		require.ErrorContains(t, faults(t, strings.Replace(readFile(t), edit[0], edit[1], 1)), fault)
	}
}

// Each query is PromQL, and names metrics and labels that there are.
func TestDashboardNamesWhatIsThere(t *testing.T) {
	board, metrics := readDashboard(t), readManual(t)
	variables := []string{"$__rate_interval", "5m"}
	for _, v := range board.Templating.List {
		variables = append(variables, "$"+v.Name, ".*")
		if v.Query.Map == nil {
			require.Equal(t, dashboard.VariableTypeDatasource, v.Type)
			continue
		}
		m := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Query.Map["query"].(string))
		require.NotNil(t, m, v.Name)
		require.NoError(t, check(strings.NewReplacer(variables...).Replace(m[1]), "{{"+m[2]+"}}", metrics), v.Name)
	}
	for _, p := range panels(t, board) {
		require.NotEmpty(t, p.Targets, *p.Title)
		for _, target := range p.Targets {
			query, ok := target.(*prometheus.Dataquery)
			require.True(t, ok, "%s: %T", *p.Title, target)
			expr := strings.NewReplacer(variables...).Replace(query.Expr)
			require.NotContains(t, expr, "$", *p.Title)
			require.NoError(t, check(expr, *query.LegendFormat, metrics), *p.Title)
		}
	}
}

// So do the queries that the manual says to watch.
func TestManualWatchesWhatIsThere(t *testing.T) {
	metrics := readManual(t)
	_, section, found := strings.Cut(manualText(t), "# What to watch\n")
	require.True(t, found)
	queries := regexp.MustCompile(`(?m)^//\t(.+?)  +\w`).FindAllStringSubmatch(section, -1)
	require.Greater(t, len(queries), 3)
	for _, m := range queries {
		require.NoError(t, check(m[1], "", metrics), m[1])
	}
}

// The check is able to fail.
func TestCheckCanary(t *testing.T) {
	metrics := readManual(t)
	for query, fault := range map[string]string{
		`sum(rate(tickonce_fires_total[5m])`:                                      "unclosed left parenthesis",
		`rate(tickonce_fire_total[5m])`:                                           "tickonce_fire_total is no metric",
		`rate(tickonce_fires_total{schedule="a"}[5m])`:                            "tickonce_fires_total has no label schedule",
		`sum by (reason) (rate(tickonce_fires_total[5m]))`:                        "grouped by reason, which is no label",
		`tickonce_fires_total`:                                                    "tickonce_fires_total is a counter, and not in rate or increase",
		`rate(tickonce_leading_runners[5m])`:                                      "tickonce_leading_runners is no counter, and in rate",
		`rate(tickonce_fire_lateness_seconds[5m])`:                                "tickonce_fire_lateness_seconds is no metric",
		`histogram_quantile(0.5, sum(rate(tickonce_fires_total[5m])))`:            "the quantile is not of buckets by le",
		`histogram_quantile(0.5, rate(tickonce_fire_lateness_seconds_count[5m]))`: "the quantile is not of buckets by le",
	} {
		require.ErrorContains(t, check(query, "", metrics), fault, query)
	}
	require.ErrorContains(t, check(`sum by (queue) (tickonce_queue_jobs)`, "{{state}}", metrics), "the legend has state, which is no label")
	require.NoError(t, check(`histogram_quantile(0.5, sum by (le) (rate(tickonce_fire_lateness_seconds_bucket[5m])))`, "half", metrics))
	require.NoError(t, check(`max by (queue, state) (tickonce_queue_jobs{job="a"})`, "{{queue}}", metrics))
}

// classic is a dashboard of the model that old and new versions of Grafana import.
//
//lint:ignore SA1019 the model that is preferred is for Grafana 13 and later
type classic = dashboard.Dashboard

// family is a metric, by its name in queries.
type family struct {
	kind   string
	labels []string
}

// readManual reads the table of metrics in their package's comment, which the
// package's tests compare with what there is.
func readManual(t *testing.T) map[string]family {
	metrics := map[string]family{}
	line := regexp.MustCompile(`(?m)^//\t(tickonce_\w+)(?:\{([\w,]+)\})?  (\w+)  `)
	for _, m := range line.FindAllStringSubmatch(manualText(t), -1) {
		labels := []string{"job", "instance"} // Prometheus adds these
		if m[2] != "" {
			labels = append(labels, strings.Split(m[2], ",")...)
		}
		if m[3] != "histogram" {
			metrics[m[1]] = family{m[3], labels}
			continue
		}
		metrics[m[1]+"_sum"] = family{"counter", labels}
		metrics[m[1]+"_count"] = family{"counter", labels}
		metrics[m[1]+"_bucket"] = family{"counter", append(labels, "le")}
	}
	require.NotEmpty(t, metrics)
	return metrics
}

func manualText(t *testing.T) string {
	text, err := os.ReadFile("../../metrics/doc.go")
	require.NoError(t, err)
	return string(text)
}

func readFile(t *testing.T) string {
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	return string(text)
}

func readDashboard(t *testing.T) (board classic) {
	plugins.RegisterDefaultPlugins()
	require.NoError(t, json.Unmarshal([]byte(readFile(t)), &board))
	return board
}

// faults returns where the text leaves the schema: an empty list, if nowhere.
func faults(t *testing.T, text string) (list cog.BuildErrors) {
	plugins.RegisterDefaultPlugins()
	require.ErrorAs(t, new(classic).UnmarshalJSONStrict([]byte(text)), &list)
	return list
}

func panels(t *testing.T, board classic) (panels []dashboard.Panel) {
	for _, p := range board.Panels {
		require.NotNil(t, p.Panel)
		panels = append(panels, *p.Panel)
	}
	require.NotEmpty(t, panels)
	return panels
}

// check returns what is wrong with a query and the legend of its series.
func check(query, legend string, metrics map[string]family) error {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return err
	}
	labels, err := labelsOf(expr, false, metrics)
	if err != nil {
		return err
	}
	for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(legend, -1) {
		if !slices.Contains(labels, m[1]) {
			return fmt.Errorf("the legend has %s, which is no label", m[1])
		}
	}
	return nil
}

// labelsOf returns the labels of the series that an expression, which is in a
// rate or is not, results in.
func labelsOf(node parser.Node, rated bool, metrics map[string]family) (labels []string, err error) {
	if call, ok := node.(*parser.Call); ok {
		rated = call.Func.Name == "rate" || call.Func.Name == "increase"
	}
	for child := range parser.ChildrenIter(node) {
		of, err := labelsOf(child, rated, metrics)
		if err != nil {
			return nil, err
		}
		labels = append(labels, of...)
	}
	switch n := node.(type) {
	case *parser.VectorSelector:
		metric, ok := metrics[n.Name]
		switch {
		case !ok:
			return nil, fmt.Errorf("%s is no metric", n.Name)
		case metric.kind == "counter" && !rated:
			return nil, fmt.Errorf("%s is a counter, and not in rate or increase", n.Name)
		case metric.kind != "counter" && rated:
			return nil, fmt.Errorf("%s is no counter, and in rate or increase", n.Name)
		}
		for _, matcher := range n.LabelMatchers {
			if matcher.Name != "__name__" && !slices.Contains(metric.labels, matcher.Name) {
				return nil, fmt.Errorf("%s has no label %s", n.Name, matcher.Name)
			}
		}
		return metric.labels, nil
	case *parser.AggregateExpr:
		for _, label := range n.Grouping {
			if !slices.Contains(labels, label) {
				return nil, fmt.Errorf("grouped by %s, which is no label", label)
			}
		}
		return n.Grouping, nil
	case *parser.Call:
		if n.Func.Name == "histogram_quantile" && !slices.Contains(labels, "le") {
			return nil, fmt.Errorf("the quantile is not of buckets by le")
		}
	}
	return labels, nil
}
