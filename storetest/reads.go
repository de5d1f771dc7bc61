package storetest

import (
	"math"

	"github.com/tickonce/tickonce/store"
)

// byBytes are names in their order.
var byBytes = []string{"A", "Z", "a", "a b", "aa", "b", "é", "日"}

// shuffled are byBytes in another order.
var shuffled = []string{"é", "b", "aa", "日", "A", "a", "Z", "a b"}

var readScenarios = []scenario{
	{name: "schedules in name order, from inclusive", run: func(r *rig) {
		for _, name := range shuffled {
			r.create(every(name, start))
		}
		readsNames(r, func(from string, n int) (names []string, untouched bool) {
			dst := make([]store.Schedule, n)
			for i := range dst {
				dst[i].Name = "before"
			}
			got := r.schedules(from, dst)
			untouched = true
			for _, row := range dst[len(got):] {
				untouched = untouched && row.Name == "before"
			}
			return namesOf(got), untouched
		})
	}},
	{name: "queues in name order, from inclusive", run: func(r *rig) {
		for _, name := range shuffled {
			in := plain()
			in.Queue = name
			r.insert(in)
		}
		readsNames(r, func(from string, n int) (names []string, untouched bool) {
			dst := make([]store.Queue, n)
			for i := range dst {
				dst[i].Name = "before"
			}
			got := r.queues(from, dst)
			untouched = true
			for _, q := range dst[len(got):] {
				untouched = untouched && q.Name == "before"
			}
			for _, q := range got {
				names = append(names, q.Name)
			}
			return names, untouched
		})
	}},
	{name: "jobs of one queue in id order, from inclusive, of one state or any", run: func(r *rig) {
		other := plain()
		other.Queue = "other"
		dead := idsOf(r.dead(1))
		ids := r.insert(plain(), other, plain(), plain(), other, plain())
		others, ids := []store.JobID{ids[1], ids[4]}, []store.JobID{ids[0], ids[2], ids[3], ids[5]}
		claimed := r.claim(2)
		same(r, "claimed", idsOf(claimed), ids[:2])
		all := append(dead, ids...)
		for _, c := range []struct {
			name   string
			filter store.Filter
			n      int
			want   []store.JobID
		}{
			{"any state", store.Filter{Queue: "q"}, 9, all},
			{"as many as dst holds", store.Filter{Queue: "q"}, 2, all[:2]},
			{"dst just long enough", store.Filter{Queue: "q"}, 5, all},
			{"an empty dst", store.Filter{Queue: "q"}, 0, nil},
			{"from the first", store.Filter{Queue: "q", From: all[0]}, 9, all},
			{"from one of them", store.Filter{Queue: "q", From: all[2]}, 9, all[2:]},
			{"from another queue's", store.Filter{Queue: "q", From: others[0]}, 9, all[2:]},
			{"from the last", store.Filter{Queue: "q", From: all[4]}, 9, all[4:]},
			{"from past the last", store.Filter{Queue: "q", From: all[4] + 1}, 9, nil},
			{"from the greatest id", store.Filter{Queue: "q", From: math.MaxInt64}, 9, nil},
			{"pending", store.Filter{Queue: "q", State: store.Pending}, 9, ids[2:]},
			{"claimed", store.Filter{Queue: "q", State: store.Claimed}, 9, ids[:2]},
			{"dead", store.Filter{Queue: "q", State: store.Dead}, 9, dead},
			{"done, which no kept job is", store.Filter{Queue: "q", State: store.Done}, 9, nil},
			{"claimed, as many as dst holds", store.Filter{Queue: "q", State: store.Claimed}, 1, ids[:1]},
			{"pending, from one of them", store.Filter{Queue: "q", State: store.Pending, From: ids[3]}, 9, ids[3:]},
			{"another queue's", store.Filter{Queue: "other"}, 9, others},
			{"an unknown queue's", store.Filter{Queue: "none"}, 9, nil},
		} {
			dst := make([]store.Job, c.n)
			for i := range dst {
				dst[i].ID = -1
			}
			got := r.jobs(c.filter, dst)
			same(r, c.name, idsOf(got), c.want)
			for _, j := range dst[len(got):] {
				same(r, c.name+": beyond the rows read", j.ID, -1)
			}
		}
	}},
	{name: "a queue is there from its first job on, and stays", run: func(r *rig) {
		in := plain()
		in.Queue = "never"
		r.refused(store.Batch{Cancels: []store.JobRef{{Queue: "never", Job: 1}}, Inserts: []store.Insert{in}},
			store.NotFound, store.Cancels, 0)
		r.create(every("s", start)) // a schedule alone uses no queue
		r.claimAll("never", "w", make([]store.Job, 1))
		same(r, "queues", len(r.rows().Queues), 0)

		ids := r.insert(plain())
		r.write(store.Batch{Cancels: []store.JobRef{{Queue: "q", Job: ids[0]}}})
		same(r, "queue", r.queue(), store.Queue{Name: "q", Enqueued: 1, Cancelled: 1, NextClaimAt: store.None})
	}},
	{name: "S3 a schedule is read as it was written, in every field", run: func(r *rig) {
		row := store.Schedule{
			Name: "s", Spec: "@every 90s", Queue: "q", Payload: []byte{1},
			Stamps:    store.Stamps{VisibilityMS: 2, BaseBackoffMS: 3, MaxAttempts: 4},
			ExpiresMS: 5, CatchUp: store.CatchUp{WindowMS: 6, Max: 7, Newest: true},
			Anchor: store.MinInstant, Cursor: store.MaxInstant, DueAt: store.None, SetAt: -8,
			Priority: -9, Paused: store.PausedByBreaker,
			Hold: &store.Hold{Reason: "a reason", Since: 10, Times: 11},
		}
		written := r.create(row)[0]
		row.ID, row.Rev = written.ID, 1
		same(r, "written", written, row)
		same(r, "read", r.schedule("s"), row)
	}},
}

// readsNames checks a read in name order over rows with the names byBytes.
func readsNames(r *rig, read func(from string, n int) (names []string, untouched bool)) {
	r.Helper()
	for _, c := range []struct {
		name string
		from string
		n    int
		want []string
	}{
		{"from the start", "", 8, byBytes},
		{"dst longer", "", 20, byBytes},
		{"dst shorter", "", 3, byBytes[:3]},
		{"dst empty", "", 0, nil},
		{"from a name", "aa", 9, byBytes[4:]},
		{"from a name, one row", "aa", 1, byBytes[4:5]},
		{"from just after a name", "aa\x00", 9, byBytes[5:]},
		{"from between two names", "a\xff", 9, byBytes[5:]},
		{"from the last name", "日", 9, byBytes[7:]},
		{"from past the last name", "日\x00", 9, nil},
	} {
		names, untouched := read(c.from, c.n)
		same(r, c.name, names, c.want)
		same(r, c.name+": dst beyond the rows is untouched", untouched, true)
	}
}
