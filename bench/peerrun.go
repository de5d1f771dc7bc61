package main

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/tickonce/tickonce/bench/peers"
)

// peerRun is another library in a bubble of virtual time. It is woken in every
// instant that has boundaries, by its own timers, and a fire is a run of its
// job, which counts.
type peerRun struct {
	bubble    *peers.Bubble
	scheduler peers.Scheduler
	removes   []func() error
	nowMS     int64
	fires     atomic.Int64
}

// openPeer adds the schedules of a workload and starts the peer.
func openPeer(p *peers.Peer) func(w *workload) (run, error) {
	return func(w *workload) (run, error) {
		r, err := newPeerRun(p)
		if err != nil {
			return nil, err
		}
		if _, _, err := r.add(w, math.MaxInt64); err != nil {
			return nil, err
		}
		r.removes = nil // no part of what the peer keeps
		return r, nil
	}
}

func newPeerRun(p *peers.Peer) (r *peerRun, err error) {
	r = &peerRun{bubble: peers.NewBubble(), nowMS: epoch}
	r.bubble.Do(func() { r.scheduler, err = p.Open(nil) })
	return r, err
}

// add adds schedules until the CPU time is spent, and starts the peer. It
// answers how long the adding took, and of how many.
func (r *peerRun) add(w *workload, budget time.Duration) (spent time.Duration, n int, err error) {
	r.bubble.Do(func() {
		start, count := time.Now(), func() { r.fires.Add(1) }
		spent, n, err = spendOn(len(w.schedules), budget, func(i int) error {
			s := w.schedules[i]
			remove, err := r.scheduler.On(s.name, peers.Grid{
				First:    start.Add(time.Duration(s.firstMS-epoch) * time.Millisecond),
				Interval: time.Duration(s.intervalMS) * time.Millisecond,
			}, count)
			r.removes = append(r.removes, remove)
			return err
		})
		r.scheduler.Start()
		peers.Pass(time.Millisecond / 2) // so that no boundary falls into the instant of a step
	})
	return spent, n, err
}

// remove removes, in the order of adding, what was added.
func (r *peerRun) remove(budget time.Duration) (spent time.Duration, n int, err error) {
	r.bubble.Do(func() {
		spent, n, err = spendOn(len(r.removes), budget, func(i int) error { return r.removes[i]() })
	})
	return spent, n, err
}

// spendOn calls do with 0 to n-1, or until the CPU time is spent.
func spendOn(n int, budget time.Duration, do func(i int) error) (spent time.Duration, done int, err error) {
	begin := cpuTime()
	for done < n && spent < budget && err == nil {
		err = do(done)
		if done++; done%16 == 0 || done == n {
			spent = cpuTime() - begin
		}
	}
	return spent, done, err
}

func (r *peerRun) fire(nowMS int64) error {
	r.bubble.Do(func() { peers.Pass(time.Duration(nowMS-r.nowMS) * time.Millisecond) })
	r.nowMS = nowMS
	return nil
}

func (r *peerRun) drain() (int, error) { return int(r.fires.Swap(0)), nil }

func (r *peerRun) payloadBytes() int { return 0 }

func (r *peerRun) close() {
	r.bubble.Do(r.scheduler.Stop)
	r.bubble.Close()
}

// wokenRun is the engine, woken as a peer is: in every instant that has
// boundaries.
type wokenRun struct {
	*engineRun
	nextMS int64
}

func openWoken(w *workload) (run, error) {
	r, err := openEngine(w)
	return &wokenRun{r.(*engineRun), epoch}, err
}

func (r *wokenRun) fire(nowMS int64) error {
	for r.nextMS <= nowMS {
		if err := r.engineRun.fire(r.nextMS); err != nil {
			return err
		}
		r.nextMS = r.next.UnixMilli()
	}
	return nil
}

// workedRun is the engine with its worker: what fired is claimed and acked in
// the time of the fire. Its jobs run as a peer's do, which is to be counted.
type workedRun struct {
	wokenRun
	ran int
}

func openWorked(w *workload) (run, error) {
	r, err := openEngine(w)
	return &workedRun{wokenRun: wokenRun{r.(*engineRun), epoch}}, err
}

func (r *workedRun) fire(nowMS int64) error {
	for r.nextMS <= nowMS {
		if err := r.wokenRun.fire(r.nextMS); err != nil {
			return err
		}
		n, err := drainBatches(r.engine, claimBatch)
		if err != nil {
			return err
		}
		r.ran += n
	}
	return nil
}

func (r *workedRun) drain() (int, error) {
	ran := r.ran
	r.ran = 0
	return ran, nil
}
