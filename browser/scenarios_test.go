package browser

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/sim/htmlreport"
	"github.com/tickonce/tickonce/store"
	"github.com/tickonce/tickonce/storetest"
)

var hostile = []string{
	`</script><img src=x onerror=alert(1)>`, `"><iframe srcdoc="<script>alert(2)</script>">`, "\u202egnp.exe", `'onload='alert(3)`,
	strings.Repeat("wide", 32),
}

// unfenced is a store with a bug: it takes a tick of any runner for one of the
// runner that leads.
type unfenced struct {
	store.Store
	lease store.Lease
}

func (s *unfenced) Acquire(ctx context.Context, lock, owner string, ttlMS int64) (store.Grant, error) {
	g, err := s.Store.Acquire(ctx, lock, owner, ttlMS)
	if g.OK {
		s.lease = g.Lease
	}
	return g, err
}

func (s *unfenced) Advance(ctx context.Context, t *store.Tick) (bool, error) {
	forged := *t
	forged.By = s.lease
	return s.Store.Advance(ctx, &forged)
}

func example(t testing.TB, name string) (sim.Scenario, string) {
	text, err := os.ReadFile("../examples/scenarios/" + name)
	require.NoError(t, err)
	s, err := sim.Parse(name, string(text))
	require.NoError(t, err)
	return s, string(text)
}

var (
	made   map[string]string
	folder string // of the files, which is removed at the end
)

// reports writes the pages that the tests look at, once, and answers their
// files by name.
func reports(t *testing.T) map[string]string {
	if made != nil {
		return made
	}
	var err error
	folder, err = os.MkdirTemp("", "reports")
	require.NoError(t, err)
	files := map[string]string{}
	write := func(name string, s sim.Scenario, source htmlreport.Source) *sim.Result {
		files[name] = filepath.Join(folder, name+".html")
		return write(t, files[name], s, source)
	}
	for name, file := range map[string]string{"outages": "all-outages.sim", "clock": "bad-ntp.sim", "snapshot": "crash-snapshot.sim", "hidden": "hidden-tab.sim", "calm": "calm.sim"} {
		s, text := example(t, file)
		write(name, s, htmlreport.Source{File: file, Text: text})
	}
	s, text := example(t, "calm.sim")
	with, added := s, "down for=10h at=2d"
	with.Expect = nil
	f, err := s.ParseFault(added)
	require.NoError(t, err)
	with.Faults = []sim.Fault{f}
	compared, err := sim.Compare(s, with)
	require.NoError(t, err)
	write("what-if", with, htmlreport.Source{File: "calm.sim", Text: text, WhatIf: compared, Faults: []string{added}})
	s, text = example(t, "paused-leader.sim")
	s.Store = func(now func() store.Instant, limits store.Limits) store.Store {
		return &unfenced{Store: storetest.NewNaive(now, limits)}
	}
	so, err := sim.Shrink(s, sim.Shrinking{Runs: 200})
	require.NoError(t, err)
	require.Equal(t, sim.Safety, write("violation", s, htmlreport.Source{
		File: "paused-leader.sim", Text: text,
		Shrunk: htmlreport.Shrunk{Text: so.Scenario.String(), Says: "shrunk from 1 fault, 2 schedules, 2h to 1 fault, 1 schedule, 13m in 70 runs", File: "smaller.sim"},
	}).Verdict)
	h := sim.Scenario{Engine: sim.Engine{Runners: 3, StandBy: true}, For: 4 * time.Hour, Faults: []sim.Fault{
		{Kind: sim.FaultDown, At: 30 * time.Minute, For: 90 * time.Minute},
		{Kind: sim.FaultClockDrift, At: 3 * time.Hour, For: 10 * time.Minute, Drift: 100_000},
		{Kind: sim.FaultThrottle, At: 2*time.Hour + 10*time.Minute, For: 20 * time.Minute, Runner: 1, Profile: sim.LowPower},
		{Kind: sim.FaultSwizzle, At: 2*time.Hour + 40*time.Minute, For: 10 * time.Minute},
		{Kind: sim.FaultOverload, At: 3*time.Hour + 20*time.Minute, Queue: hostile[0], Jobs: 40},
	}}
	for _, name := range hostile {
		h.Schedules = append(h.Schedules, sim.Schedule{Name: name, Spec: "@every 1m", Queue: name})
	}
	write("hostile", h, htmlreport.Source{File: hostile[0] + ".sim"})
	write("leases", sim.Scenario{
		Engine: sim.Engine{StandBy: true}, For: 5 * 24 * time.Hour, Schedules: []sim.Schedule{{Name: "report", Spec: "@every 1h", Queue: "mail"}},
		Faults: []sim.Fault{
			{Kind: sim.FaultDown, At: 24 * time.Hour, For: time.Minute},
			{Kind: sim.FaultStoreErrors, At: 24*time.Hour + 10*time.Minute, For: 6 * time.Hour, Op: sim.OpAcquire, Applied: sim.AppliedYes},
			{Kind: sim.FaultDown, At: 24*time.Hour + 20*time.Minute, For: time.Minute},
			{Kind: sim.FaultDown, At: 24*time.Hour + 30*time.Minute, For: time.Minute},
		},
	}, htmlreport.Source{File: "leases.sim"})
	files["recording"] = filepath.Join(folder, "recording.html")
	recording(t, files["recording"])
	made = files
	return made
}

// write writes the report of the scenario's run.
func write(t testing.TB, file string, s sim.Scenario, source htmlreport.Source) *sim.Result {
	recorder := htmlreport.NewRecorder(s)
	result, err := sim.Watch(s, recorder.Tell)
	require.NoError(t, err)
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, recorder.Write(f, result, source))
	require.NoError(t, f.Close())
	return result
}
