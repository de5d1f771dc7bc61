package main

import (
	"fmt"
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

	Note string `json:"note,omitempty"` // what the contestant could not do
}

func newRow(what string, schedules int, by string, ns sample) row {
	return row{What: what, Schedules: schedules, By: by, NS: ns.median(), Spread: ns.spread()}
}

func (r *row) compare(to string, ratio float64) { r.Ratio, r.To = ratio, to }

func newTable(rows []row) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.SuppressEmptyColumns()
	t.AppendHeader(table.Row{"what", "schedules", "by", "ns", "±", "allocs", "B/schedule", "fired", "ratio", "to", "note"})
	columns := []table.ColumnConfig{}
	for _, number := range []int{2, 4, 5, 6, 7, 8, 9} {
		columns = append(columns, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	for i, r := range rows {
		if i > 0 && (r.Schedules != rows[i-1].Schedules || r.What != rows[i-1].What && rows[i-1].To != "") {
			t.AppendSeparator()
		}
		t.AppendRow(table.Row{
			r.What, count(r.Schedules), r.By,
			optional("%.0f", positive(r.NS)), optional("%.0f %%", positive(100*r.Spread)),
			optional("%.2f", r.Allocs), optional("%.0f", r.IdleBytes), optional("%.0f", r.FiredBytes),
			optional("%.2f×", positive(r.Ratio)), r.To, r.Note,
		})
	}
	return t
}

func positive(v float64) *float64 {
	if v > 0 {
		return &v
	}
	return nil
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
