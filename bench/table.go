package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// row is one line of the result.
type row struct {
	What      string  `json:"what"`
	Schedules int     `json:"schedules,omitempty"`
	By        string  `json:"by"`
	NS        float64 `json:"ns"`     // median of the repetitions
	Spread    float64 `json:"spread"` // half the distance of the quartiles, as a part of NS

	Allocs     *float64 `json:"allocs,omitempty"`
	IdleBytes  *float64 `json:"idle_bytes_per_schedule,omitempty"`  // before any schedule has fired
	FiredBytes *float64 `json:"fired_bytes_per_schedule,omitempty"` // when all have

	Ratio float64 `json:"ratio,omitempty"` // of NS to that of To
	To    string  `json:"to,omitempty"`
}

func newRow(what string, schedules int, by string, ns sample) row {
	return row{What: what, Schedules: schedules, By: by, NS: ns.median(), Spread: ns.spread()}
}

func (r *row) compare(to string, ratio float64) { r.Ratio, r.To = ratio, to }

func printTable(out io.Writer, rows []row) {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"what", "schedules", "by", "ns", "±", "allocs", "B/schedule", "fired", "ratio", "to"})
	columns := []table.ColumnConfig{}
	for _, number := range []int{2, 4, 5, 6, 7, 8, 9} {
		columns = append(columns, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	for i, r := range rows {
		if i > 0 && r.Schedules != rows[i-1].Schedules {
			t.AppendSeparator()
		}
		t.AppendRow(table.Row{
			r.What, count(r.Schedules), r.By,
			fmt.Sprintf("%.0f", r.NS), fmt.Sprintf("%.0f %%", 100*r.Spread),
			optional("%.2f", r.Allocs), optional("%.0f", r.IdleBytes), optional("%.0f", r.FiredBytes),
			ratio(r.Ratio), r.To,
		})
	}
	t.Render()
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func optional(format string, v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf(format, *v)
}

func ratio(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f×", v)
}
