package main

// heapRun is the least that a loop over schedules can do: it takes the first
// due instant of a 4-ary heap, moves it on by its schedule's interval, and
// sifts it down.
type heapRun struct {
	heap      []heapEntry
	intervals []int64 // by schedule
	fires     int
}

type heapEntry struct {
	dueMS    int64
	schedule int32
}

func openHeap(w *workload) (run, error) {
	r := &heapRun{
		heap:      make([]heapEntry, len(w.schedules)),
		intervals: make([]int64, len(w.schedules)),
	}
	for i, s := range w.schedules {
		r.heap[i] = heapEntry{s.firstMS, int32(i)}
		r.intervals[i] = s.intervalMS
	}
	for i := len(r.heap)/4 + 1; i >= 0; i-- {
		if i < len(r.heap) {
			r.sift(i)
		}
	}
	return r, nil
}

func (r *heapRun) fire(nowMS int64) error {
	for r.heap[0].dueMS <= nowMS {
		top := &r.heap[0]
		top.dueMS += r.intervals[top.schedule]
		r.sift(0)
		r.fires++
	}
	return nil
}

// sift moves the entry at i down to where it belongs.
func (r *heapRun) sift(i int) {
	h := r.heap
	entry := h[i]
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least, dueMS := first, h[first].dueMS
		for c := first + 1; c < min(first+4, len(h)); c++ {
			if h[c].dueMS < dueMS {
				least, dueMS = c, h[c].dueMS
			}
		}
		if dueMS >= entry.dueMS {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = entry
}

func (r *heapRun) drain() (int, error) {
	fires := r.fires
	r.fires = 0
	return fires, nil
}

func (r *heapRun) payloadBytes() int { return 0 }
