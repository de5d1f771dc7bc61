package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/bench/peers"
)

func TestMain(m *testing.M) {
	peers.Main()
	os.Exit(m.Run())
}

// TestPeersDoWhatIsWritten tries every behaviour again and compares what was
// observed, and the versions, with docs/PEERS.md.
func TestPeersDoWhatIsWritten(t *testing.T) {
	page, err := os.ReadFile("../docs/PEERS.md")
	require.NoError(t, err)
	for line := range strings.Lines(newBehaviours().RenderMarkdown()) {
		require.Contains(t, string(page), strings.TrimRight(line, "\n"), "make peers renews it")
	}
	for _, p := range peers.Others {
		require.Regexp(t, `^v\d+\.\d+\.\d+$`, version(p), p.Name)
		require.Contains(t, string(page), fmt.Sprintf("| %s | %s |", version(p), p.License))
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
