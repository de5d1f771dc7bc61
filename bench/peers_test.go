package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/bench/peers"
)

func TestMain(m *testing.M) {
	peers.Main()
	os.Exit(m.Run())
}

var rewrite = flag.Bool("rewrite", false, "renew docs/PEERS.md, but for the measurements")

// TestPeersDoWhatIsWritten tries every behaviour again, and compares the page
// that is written of it with docs/PEERS.md, but for the measurements.
func TestPeersDoWhatIsWritten(t *testing.T) {
	const path = "../docs/PEERS.md"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	renewed, err := newPeersPage("", 0, nil)
	require.NoError(t, err)
	observed := func(page []byte) string {
		_, page, head := bytes.Cut(page, []byte("| library |"))
		page, _, foot := bytes.Cut(page, []byte("## What it costs"))
		require.True(t, head && foot, "the page has its parts")
		return string(page)
	}
	if *rewrite {
		page = bytes.Replace(page, []byte(observed(page)), []byte(observed(renewed)), 1)
		require.NoError(t, os.WriteFile(path, page, 0o644))
	}
	require.Equal(t, observed(renewed), observed(page), "go test -run Written . -rewrite renews it")
	for _, p := range peers.Others {
		require.Regexp(t, `^v\d+\.\d+\.\d+$`, version(p), p.Name)
	}
}

// TestMeasurePeers measures every peer once, at its smallest. No row has the
// note of a peer that did not fire every boundary.
func TestMeasurePeers(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, measure([]string{"-n", "", "-peers", "1000", "-r", "1", "-json"}, &out))
	var rows []row
	require.NoError(t, json.Unmarshal(out.Bytes(), &rows))
	require.Len(t, rows, 2*len(peers.All)+2*(len(peers.All)+1))
	for _, r := range rows {
		require.Positive(t, r.NS, r.What)
		require.Empty(t, r.Note, "%s %s", r.By, r.What)
	}
}

// TestHerdHasTheFiresOfATick: one wake finds nearly as many boundaries as a
// tick of the engine's own measurement has, and the next wake the next ones.
func TestHerdHasTheFiresOfATick(t *testing.T) {
	for n, step := range map[int]time.Duration{1000: 300 * time.Second, 10_000: 100 * time.Second, 100_000: 10 * time.Second} {
		w := newHerd(n)
		require.Equal(t, step.Milliseconds(), w.stepMS)
		for _, s := range w.schedules {
			require.Zero(t, (s.firstMS-epoch)%w.stepMS)
			require.Zero(t, s.intervalMS%w.stepMS)
			require.Greater(t, s.firstMS, int64(epoch))
		}
		require.InEpsilon(t, w.perStep()*float64(w.rounds()*100), w.boundaries(epoch+int64(w.rounds())*100*w.stepMS), 0.05)
	}
}
