package main

import (
	"bytes"
	_ "embed"
	"regexp"
	"runtime"
	"strings"
	"text/template"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/tickonce/tickonce/bench/peers"
)

var (
	//go:embed peers.md.tmpl
	peersText string

	//go:embed go.mod
	goMod string

	peersPage = template.Must(template.New("peers").Funcs(template.FuncMap{"version": version}).Parse(peersText))
)

// newPeersPage is the page about other libraries, with the rows of a run.
func newPeersPage(sizes string, repetitions int, rows []row) ([]byte, error) {
	var page bytes.Buffer
	err := peersPage.Execute(&page, map[string]any{
		"Sizes":       sizes,
		"Repetitions": repetitions,
		"Peers":       peers.Others,
		"Behaviours":  newBehaviours().RenderMarkdown(),
		"Fires":       newTable(rows).RenderMarkdown(),
		"Go":          runtime.Version(),
		"Platform":    runtime.GOOS + "/" + runtime.GOARCH,
		"Cores":       runtime.GOMAXPROCS(0),
	})
	return page.Bytes(), err
}

// newBehaviours tries every behaviour with every peer.
func newBehaviours() table.Writer {
	t := table.NewWriter()
	header := table.Row{"case", "situation"}
	for _, p := range peers.All {
		header = append(header, p.Name+" "+version(p))
	}
	t.AppendHeader(header)
	for _, b := range peers.Behaviours {
		line := table.Row{b.Case, b.What}
		for _, p := range peers.All {
			line = append(line, b.Observe(p))
		}
		t.AppendRow(line)
	}
	return t
}

// version is the version of the peer that go.mod requires; none for the engine,
// which is the checkout's.
func version(p *peers.Peer) string {
	required := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(p.Module) + ` (\S+)`).FindStringSubmatch(goMod)
	if required == nil || strings.HasPrefix(required[1], "v0.0.0") {
		return ""
	}
	return required[1]
}
