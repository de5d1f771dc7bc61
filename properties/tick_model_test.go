package properties_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
)

// tickModel is what schedules and runners do, boundary by boundary, in
// milliseconds from start. It has no queue that is full and no row from
// elsewhere.
type tickModel struct {
	rows   map[string]modelRow
	writes int
	lease  struct {
		run       int
		expiresAt int64
	}
	leads   map[int]bool      // by run: as far as it knows
	looks   map[int]modelLook // by run
	batch   int
	lastJob tickonce.JobID
}

type modelRow struct {
	every, anchor, cursor int64
	queue                 string
	expires               span
	policy                tickonce.CatchUp
	paused                bool
	write                 int // of the row: which of all writes
}

// modelLook is what a runner has read.
type modelLook struct {
	now  int64
	rows map[string]modelRow
}

const modelTTL = 60_000

func newTickModel(batch int) *tickModel {
	return &tickModel{rows: map[string]modelRow{}, leads: map[int]bool{}, looks: map[int]modelLook{}, batch: batch}
}

func sinceStart(at time.Time) int64 { return at.Sub(start).Milliseconds() }

func (m *tickModel) put(name string, row modelRow) {
	m.writes++
	row.write = m.writes
	m.rows[name] = row
}

// edit plays an operation that is no step of a runner.
func (m *tickModel) edit(o operation, now int64) {
	switch o := o.(type) {
	case schedule:
		row, exists := m.rows[o.Name]
		old := row
		anchor, every := time.Duration(o.Anchor).Milliseconds(), intervalMS(o.Every)
		newGrid := !exists || o.Reset || o.Anchor != 0 && anchor != row.anchor || every != row.every
		if newGrid {
			if row.anchor, row.every = anchor, every; o.Anchor == 0 {
				row.anchor = now
			}
			row.cursor = row.anchor
			for row.cursor <= now {
				row.cursor += row.every
			}
		}
		row.queue, row.expires, row.policy = o.Queue, o.Expires, catchUps[o.CatchUp]
		if newGrid || row != old {
			m.put(o.Name, row)
		}
	case unschedule:
		delete(m.rows, o.Name)
	case pause:
		if row, ok := m.rows[o.Name]; ok && !row.paused {
			row.paused = true
			m.put(o.Name, row)
		}
	case resume:
		if row, ok := m.rows[o.Name]; ok && row.paused {
			row.paused = false
			for !o.CatchUp && row.cursor <= now {
				row.cursor += row.every
			}
			m.put(o.Name, row)
		}
	}
}

// live reports whether the lease is the run's, or with 0 anyone's.
func (m *tickModel) live(run int, now int64) bool {
	l := m.lease
	return l.run != 0 && (run == 0 || l.run == run) && now < l.expiresAt && l.expiresAt <= now+modelTTL+1000
}

// step follows a runner, and judges what it did.
func (m *tickModel) step(t *rapid.T, took took, now int64) {
	var fires []tickonce.Fire
	var passed []tickonce.Passed
	switch took.Phase {
	case tickonce.PhaseAcquire:
		require.Equal(t, m.live(0, now) && !m.live(took.Run, now), took.Err != "", "refused while another leads")
		if !m.live(0, now) {
			m.lease.run, m.lease.expiresAt = took.Run, now+modelTTL
		}
		m.leads[took.Run] = m.live(took.Run, now)
	case tickonce.PhaseRenew:
		if m.leads[took.Run] = m.live(took.Run, now); m.leads[took.Run] {
			m.lease.expiresAt = now + modelTTL
		}
	case tickonce.PhaseRelease:
		if m.leads[took.Run] && m.lease.run == took.Run {
			m.lease.run = 0
		}
	case tickonce.PhaseSelect:
		m.looks[took.Run] = modelLook{now, maps.Clone(m.rows)}
	case tickonce.PhaseAdvance:
		if m.leads[took.Run] = m.live(took.Run, now); m.leads[took.Run] {
			fires, passed = m.advance(m.looks[took.Run])
		}
	}
	got := slices.Clone(took.Fires)
	for i := range got {
		require.Greater(t, got[i].Job, m.lastJob)
		m.lastJob, got[i].Job = got[i].Job, 0
	}
	require.Equal(t, fires, got, "fires")
	require.Equal(t, passed, took.Passed, "passed")
}

// rested judges what the runners leave behind: nothing that was due when the
// one that leads last looked (T13).
func (m *tickModel) rested(t *rapid.T, runs []int, now int64) {
	for _, run := range runs {
		if !m.live(run, now) {
			continue
		}
		for name, row := range m.rows {
			require.True(t, row.paused || row.cursor > m.looks[run].now, "%s is due, and nobody sees to it", name)
		}
	}
}

// advance fires what was due at the look and has not changed since.
func (m *tickModel) advance(look modelLook) (fires []tickonce.Fire, passed []tickonce.Passed) {
	var due []string
	for name, row := range look.rows {
		if !row.paused && row.cursor <= look.now {
			due = append(due, name)
		}
	}
	slices.SortFunc(due, func(a, b string) int {
		return cmp.Or(cmp.Compare(look.rows[a].cursor, look.rows[b].cursor), cmp.Compare(a, b))
	})
	budget := m.batch
	for i, name := range due[:min(len(due), m.batch)] {
		row := look.rows[name]
		boundaries, pass := row.pass(name, look.now)
		if budget -= len(boundaries); budget < 0 && i > 0 {
			break
		}
		if m.rows[name].write != row.write {
			continue
		}
		for _, b := range boundaries {
			fires = append(fires, tickonce.Fire{Schedule: name, Queue: row.queue, Boundary: atMS(b)})
		}
		passed = append(passed, pass)
		row.cursor = sinceStart(pass.Next)
		m.put(name, row)
	}
	slices.SortFunc(fires, func(a, b tickonce.Fire) int {
		return cmp.Or(a.Boundary.Compare(b.Boundary), cmp.Compare(a.Schedule, b.Schedule))
	})
	return fires, passed
}

// pass walks from the cursor to now.
func (r modelRow) pass(name string, now int64) (fires []int64, passed tickonce.Passed) {
	var late, due []int64
	for ; r.cursor <= now; r.cursor += r.every {
		if r.window() > 0 && r.cursor < now-r.window() {
			late = append(late, r.cursor)
		} else {
			due = append(due, r.cursor)
		}
	}
	most, reason := r.policy.Count, "policy"
	if most == 0 {
		most, reason = 64, "cap"
	}
	var dropped []int64
	switch more := len(due) - most; {
	case more <= 0:
		fires = due
	case r.policy.Newest:
		dropped, fires = due[:more], due[more:]
	default:
		fires, dropped = due[:most], due[most:]
	}
	passed = tickonce.Passed{Schedule: name, Fired: len(fires), Next: atMS(r.cursor)}
	for _, skip := range []struct {
		reason     string
		boundaries []int64
	}{{"policy", late}, {reason, dropped}} {
		if n := len(skip.boundaries); n > 0 {
			passed.Skips = append(passed.Skips, tickonce.Skip{
				Reason: skip.reason, First: atMS(skip.boundaries[0]), Last: atMS(skip.boundaries[n-1]), Count: int64(n),
			})
		}
	}
	return fires, passed
}

func (r modelRow) window() int64 {
	if r.policy.Window == tickonce.OnTimeWindow {
		return 10_000
	}
	return r.policy.Window.Milliseconds()
}

func intervalMS(every string) int64 {
	spec, _ := tickonce.ParseSpec("@every " + every)
	return spec.Interval().Milliseconds()
}

func atMS(ms int64) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
