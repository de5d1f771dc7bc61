package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/tickonce/tickonce/bench/peers"
)

const (
	peerBudget   = 30 * time.Millisecond // of CPU time, of a contestant in a repetition
	addBudget    = 3 * time.Second       // and addEach for each schedule
	addEach      = 12 * time.Microsecond
	removeBudget = time.Second / 2
	garbage      = 1 << 30 // bytes, after which the collector runs between two steps
)

// measurePeers lets all peers add, remove and fire n schedules, first with many
// of them due at once, then with hardly two.
func measurePeers(n, repetitions int) ([]row, error) {
	herd, single := newHerd(n), newWorkload(n)
	single.stepMS /= 50
	rows, slow, err := measureRegistration(herd)
	if err != nil {
		return nil, err
	}
	for _, load := range []struct {
		what string
		*workload
	}{{fmt.Sprintf("fire, %.0f due", herd.perStep()), herd}, {"fire, one due", single}} {
		more, err := measurePeerFires(load.what, load.workload, repetitions, slow)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// measureRegistration adds the schedules of a workload to each peer, starts it,
// and removes them again, or as many as the budgets allow. It answers which
// peers could not add them all.
func measureRegistration(w *workload) (rows []row, slow map[string]bool, err error) {
	var added, removed []row
	slow = map[string]bool{}
	for _, p := range peers.All {
		r, err := newPeerRun(p)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		for _, measure := range []struct {
			what string
			do   func() (time.Duration, int, error)
			rows *[]row
		}{
			{"add", func() (time.Duration, int, error) { return r.add(w, addBudget+time.Duration(len(w.schedules))*addEach) }, &added},
			{"remove", func() (time.Duration, int, error) { return r.remove(removeBudget) }, &removed},
		} {
			runtime.GC()
			spent, n, err := measure.do()
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", p.Name, err)
			}
			var ns sample
			ns.add(spent, n)
			row := newRow(measure.what, len(w.schedules), p.Name, ns)
			if n < len(w.schedules) {
				row.Note = fmt.Sprintf("stopped after %d", n)
			}
			if first := *measure.rows; len(first) > 0 {
				row.compare(first[0].By, row.NS/first[0].NS)
			}
			*measure.rows = append(*measure.rows, row)
		}
		slow[p.Name] = added[len(added)-1].Note != ""
		r.close()
	}
	return append(added, removed...), slow, nil
}

// measurePeerFires lets the contestants fire in turns: the engine, which the
// others are compared with, the engine with a worker, and the peers that are
// not too slow to have all schedules.
func measurePeerFires(what string, w *workload, repetitions int, slow map[string]bool) ([]row, error) {
	contestants := []contestant{{"tickonce", openWoken}, {"tickonce with a worker", openWorked}}
	for _, p := range peers.Others {
		if !slow[p.Name] {
			contestants = append(contestants, contestant{p.Name, openPeer(p)})
		}
	}
	// That nobody is charged for the collector favours those who leave much
	// behind.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var entrants []*entrant
	for _, c := range contestants {
		e, err := enterPeer(c, w, time.Duration(repetitions)*peerBudget)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		defer e.close()
		entrants = append(entrants, e)
	}
	for range repetitions {
		for _, e := range entrants {
			if err := e.repeat(w, time.Duration(repetitions)*peerBudget); err != nil {
				return nil, fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	rows := make([]row, len(entrants))
	for i, e := range entrants {
		rows[i] = newRow(what, len(w.schedules), e.name, e.ns)
		rows[i].Allocs, rows[i].IdleBytes = &e.allocs, &e.idle
		if want := w.boundaries(e.nowMS); e.total != want {
			rows[i].Note = fmt.Sprintf("fired %d of %d boundaries", e.total, want)
		}
		if i > 0 {
			rows[i].compare(entrants[0].name, e.ns.over(entrants[0].ns))
		}
	}
	return rows, nil
}

// enterPeer is enter for contestants of which some are so slow that not every
// schedule can fire before it is measured.
func enterPeer(c contestant, w *workload, warm time.Duration) (*entrant, error) {
	before := memory().HeapAlloc
	r, err := c.open(w)
	if err != nil {
		return nil, err
	}
	e := &entrant{name: c.name, run: r, nowMS: epoch}
	e.idle = float64(memory().HeapAlloc-before)/float64(len(w.schedules)) - float64(r.payloadBytes())
	if _, _, err := e.spend(w, warm); err != nil {
		return nil, err
	}
	e.allocs, err = e.countAllocs(w, 2)
	return e, err
}

// repeat measures once more, unless all the time of the contestant is spent.
func (e *entrant) repeat(w *workload, most time.Duration) error {
	if e.spent > most {
		return nil
	}
	spent, fires, err := e.spend(w, peerBudget)
	e.spent += spent
	e.ns.add(spent, fires)
	return err
}

func (e *entrant) close() {
	if r, ok := e.run.(*peerRun); ok {
		r.close()
	}
}

// spend steps until there were fires and the CPU time is spent.
func (e *entrant) spend(w *workload, budget time.Duration) (spent time.Duration, fires int, err error) {
	for spent < budget || fires == 0 {
		d, n, err := e.advance(w, 1)
		if err != nil {
			return 0, 0, err
		}
		spent, fires = spent+d, fires+n
		tidy()
	}
	return spent, fires, nil
}

// tidy runs the collector when much is left behind. It is off otherwise, and
// so is not charged to anyone.
func tidy() {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(heap)
	if heap[0].Value.Uint64() > heap[1].Value.Uint64()+garbage {
		runtime.GC()
	}
}
