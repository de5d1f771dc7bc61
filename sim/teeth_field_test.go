package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tickonce/tickonce/store"
)

// fieldLies are that one field is written, granted or accepted as it must not be:
// of a schedule, by each operation that writes it; of a lease; of an entry.
func fieldLies() (lies []lie) {
	add := func(what string, fails invariant, says, text string, below, above liar) {
		lies = append(lies, lie{lie: what, fails: fails, says: says, text: text, below: below, above: above})
	}
	anew := func(p *store.Put) bool { return p.Row.ID == 0 }
	kept := func(p *store.Put) bool { return p.Row.ID != 0 }
	const asked = "not what was registered"
	for _, f := range []struct {
		field      string
		change     func(*store.Schedule)
		registered invariant
		says       string
	}{
		{"spec", func(row *store.Schedule) { row.Spec = "@every 3m" }, asAsked, asked},
		{"queue", func(row *store.Schedule) { row.Queue = "r" }, asAsked, asked},
		{"payload", func(row *store.Schedule) { row.Payload = []byte("of another") }, asAsked, asked},
		{"visibility", func(row *store.Schedule) { row.Stamps.VisibilityMS++ }, asAsked, asked},
		{"backoff", func(row *store.Schedule) { row.Stamps.BaseBackoffMS++ }, asAsked, asked},
		{"attempts", func(row *store.Schedule) { row.Stamps.MaxAttempts++ }, asAsked, asked},
		{"expiry", func(row *store.Schedule) { row.ExpiresMS++ }, asAsked, asked},
		{"priority", func(row *store.Schedule) { row.Priority++ }, asAsked, asked},
		{"anchor", func(row *store.Schedule) { row.Anchor -= minuteMS }, asAsked, asked},
		{"most to catch up", func(row *store.Schedule) { row.CatchUp.Max-- }, rightPolicy, ""},
		{"window to catch up", func(row *store.Schedule) { row.CatchUp.WindowMS++ }, rightPolicy, ""},
		{"end to catch up", func(row *store.Schedule) { row.CatchUp.Newest = true }, rightPolicy, ""},
		{"due-at", func(row *store.Schedule) { row.DueAt++ }, asAsked, "left it paused"},
		{"pause", func(row *store.Schedule) { row.Paused, row.DueAt = store.PausedByBreaker, store.None }, asAsked, "left it paused"},
		{"hold", func(row *store.Schedule) { row.Hold = &store.Hold{Times: 1} }, asAsked, "left it paused"},
		{"set-at, before it was made", func(row *store.Schedule) { row.SetAt-- }, firstOfGrid, ""},
		{"set-at, after it was made", func(row *store.Schedule) { row.SetAt++ }, firstOfGrid, ""},
	} {
		add("a registration has another "+f.field, f.registered, f.says, betweenBoundaries, rewritten(anew, f.change), liar{})
		add("a pause changes the "+f.field, pauses, "its pause left", pausedHour,
			rewritten(func(p *store.Put) bool { return p.Row.Paused != store.Active }, f.change), liar{})
		add("a resume changes the "+f.field, pauses, "", pausedHour,
			rewritten(func(p *store.Put) bool { return kept(p) && p.Row.Paused == store.Active }, f.change), liar{})
		repair := repairs
		if f.field == "anchor" { // to a place on the same grid
			continue
		}
		if strings.HasPrefix(f.field, "set-at") {
			repair = firstOfGrid
		}
		add("a repair changes the "+f.field, repair, "", clockAhead,
			rewritten(func(p *store.Put) bool { return anew(p) && p.Guard.ID != 0 }, f.change), liar{})
	}
	for _, c := range []struct {
		lie, says string
		fails     invariant
		change    func(*store.Schedule)
	}{
		{"resumes", "left it paused", asAsked, func(row *store.Schedule) { row.Paused, row.DueAt = store.Active, row.Cursor }},
		{"moves its grid", "its anchor went from", keepsGrid, func(row *store.Schedule) { row.Anchor -= minuteMS }},
	} {
		add("a registration that is made again "+c.lie, c.fails, c.says, pausedAndDown, rewritten(kept, func(row *store.Schedule) {
			if string(row.Payload) == "" && row.Paused != store.Active {
				c.change(row)
			}
		}), changed)
	}

	add("a registration with another interval keeps its grid", keepsGrid, "began anew: no", twoIntervals,
		rewritten(func(p *store.Put) bool { return p.Guard.ID != 0 }, func(row *store.Schedule) { row.ID = 1 }), liar{})

	for _, c := range []struct {
		field  string
		change func(*store.Move)
	}{
		{"cursor", func(m *store.Move) { m.Cursor += minuteMS }},
		{"due-at", func(m *store.Move) { m.DueAt++ }},
		{"fires", func(m *store.Move) { m.Fires = 1 }},
		{"time since it is held", func(m *store.Move) { m.Hold.Since-- }},
		{"number of times it was held", func(m *store.Move) { m.Hold.Times++ }},
	} {
		add("a row is held with another "+c.field, holdsStill, "", heldAhead, moved(func(m *store.Move) {
			if m.Hold != nil {
				hold := *m.Hold
				m.Hold = &hold
				c.change(m)
			}
		}), liar{})
	}
	add("a move has another cursor", movesOn, "", calmHour, moved(func(m *store.Move) { m.Cursor += minuteMS }), liar{})
	add("a move has another due-at", movesOn, "", calmHour, moved(func(m *store.Move) { m.DueAt++ }), liar{})

	for _, c := range []struct {
		why    store.Why
		broken invariant
	}{{store.Conflict, revGuard}, {store.ClaimLost, staleToken}, {store.QueueFull, queueBound}} {
		add(fmt.Sprintf("a write is refused for nothing, by reason %d", c.why), c.broken, "a write was refused: yes", mails, liar{
			commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
				if len(b.Settles) == 0 {
					return s.Commit(ctx, b)
				}
				return store.Committed{Now: shownBy(s), Refusal: store.Refusal{Why: c.why}}, nil
			},
		}, liar{})
	}
	return append(lies, leaseFieldLies()...)
}

// leaseFieldLies are that a lease is granted with another field than was asked for,
// and that one is good that is not the live one in one of its fields.
func leaseFieldLies() (lies []lie) {
	// The first answer is lost, and it asks again.
	const askedTwice = calmHour + "during 0s..50ms store error-burst op=acquire applied=yes\n"
	for _, c := range []struct {
		lie, says, text string
		change          func(*store.Grant)
	}{
		{"the TTL", "a lease of", calmHour, func(g *store.Grant) { g.Lease.TTLMS++ }},
		{"the end", "a lease of", calmHour, func(g *store.Grant) { g.Lease.ExpiresAt++ }},
		{"the term of its own", "got another lease than it holds", askedTwice, func(g *store.Grant) { g.Lease.Term += store.Term(g.Now % 1000) }},
		{"the end of its own", "got another lease than it holds", askedTwice, func(g *store.Grant) { g.Lease.ExpiresAt += g.Now % 1000 }},
		{"nothing of its own", "was refused the lease that no other holds", askedTwice, func(g *store.Grant) { g.OK = g.Now%1000 == 0 }},
	} {
		lies = append(lies, lie{
			lie: "a lease is granted with " + c.lie, fails: oneLease, says: c.says, text: c.text,
			below: liar{acquire: func(s store.Store, lock, owner string, ttlMS int64) (store.Grant, error) {
				g, err := s.Acquire(ctx, lock, owner, ttlMS)
				c.change(&g)
				return g, err
			}},
		})
	}
	for _, c := range []struct {
		lie              string
		pretend, correct func(*store.Lease)
	}{
		{"an older term", func(l *store.Lease) { l.Term-- }, func(l *store.Lease) { l.Term++ }},
		{"another owner", func(l *store.Lease) { l.Owner += "?" }, func(l *store.Lease) { l.Owner = strings.TrimSuffix(l.Owner, "?") }},
	} {
		for _, does := range []struct {
			what  string
			fails invariant
			says  string
			liar  func(change func(*store.Lease)) liar
		}{
			{"a tick is written", fence, "was written, while", func(change func(*store.Lease)) liar {
				return liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
					change(&t.By)
					return s.Advance(ctx, t)
				}}
			}},
			{"it is renewed", oneLease, "a renewal by", func(change func(*store.Lease)) liar {
				return liar{renew: func(s store.Store, l store.Lease, ttlMS int64) (store.Grant, error) {
					change(&l)
					return s.Renew(ctx, l, ttlMS)
				}}
			}},
			{"it is released", oneLease, "a release by", func(change func(*store.Lease)) liar {
				return liar{release: func(s store.Store, l store.Lease) (bool, error) {
					change(&l)
					return s.Release(ctx, l)
				}}
			}},
		} {
			lies = append(lies, lie{
				lie: does.what + " under a lease of " + c.lie, fails: does.fails, says: does.says, text: downFor90m,
				above: does.liar(c.pretend), below: does.liar(c.correct),
			})
		}
	}
	return append(lies, lie{
		lie: "a lease is not released", fails: oneLease, says: "a release by", text: downFor90m,
		below: liar{release: func(store.Store, store.Lease) (bool, error) { return false, nil }},
	})
}

// moved is a liar that changes the moves of a tick before it is written.
func moved(change func(*store.Move)) liar {
	return liar{advance: func(s store.Store, t *store.Tick) (bool, error) {
		for i := range t.Moves {
			change(&t.Moves[i])
		}
		return s.Advance(ctx, t)
	}}
}

// rewritten is a liar that changes the schedules of such writes, before they are made.
func rewritten(which func(*store.Put) bool, change func(*store.Schedule)) liar {
	return liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
		for i := range b.Puts {
			if p := &b.Puts[i]; which(p) {
				change(&p.Row)
			}
		}
		return s.Commit(ctx, b)
	}}
}

// entryLies are that an entry or a job is put into its queue with another field
// than was asked for, or in spite of its key.
func entryLies() (lies []lie) {
	for _, c := range []struct {
		field  string
		change func(*store.Insert)
	}{
		{"queue", func(in *store.Insert) { in.Queue = "q" }},
		{"payload", func(in *store.Insert) { in.Payload = nil }},
		{"stamps", func(in *store.Insert) { in.Stamps = plainStamps }},
		{"key", func(in *store.Insert) { in.Key = "k" }},
		{"priority", func(in *store.Insert) { in.Priority++ }},
		{"run-at", func(in *store.Insert) { in.RunAt = 0 }},
		{"delay", func(in *store.Insert) { in.DelayMS++ }},
		{"expiry", func(in *store.Insert) { in.ExpiresMS++ }},
	} {
		lies = append(lies, lie{
			lie: "an entry has another " + c.field, fails: asAsked, says: "not those that were asked for", text: mails, above: inserted(c.change),
		})
	}
	keyed := inserted(func(in *store.Insert) { in.Key = "k" })
	for _, c := range []struct {
		lie, says string
		below     liar
	}{
		{"is put beside the live job that has it", "as one that was there: no; job", liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
			honest := *b
			honest.Inserts = slices.Clone(b.Inserts)
			for i := range honest.Inserts {
				honest.Inserts[i].Key = ""
			}
			return s.Commit(ctx, &honest)
		}}},
		{"is answered with a job that has none", "as one that was there: yes; no live job has it", answered(func(out *store.Inserted) { out.Existing = true })},
		{"is answered with another job than has it", "as one that was there: yes; job", answered(func(out *store.Inserted) {
			if out.Existing {
				out.Job++
			}
		})},
	} {
		lies = append(lies, lie{
			lie: "a key " + c.lie, fails: oneState, says: c.says, text: strings.Replace(mails, "deliver=ok:1s", "deliver=slow", 1),
			above: keyed, below: c.below,
		})
	}
	return lies
}

// answered is a liar that changes what is answered of what was put into an outbox.
func answered(change func(*store.Inserted)) liar {
	return liar{commit: func(s store.Store, b *store.Batch) (store.Committed, error) {
		done, err := s.Commit(ctx, b)
		for i := range done.Inserts {
			change(&done.Inserts[i])
		}
		return done, err
	}}
}

const (
	betweenBoundaries = `simulate v1
engine standby=yes
run 10m
schedule a every=1m queue=q anchor=2026-01-01T00:00:30Z
`
	twoIntervals = `simulate v1
engine standby=yes
run 1h
schedule a every=1m queue=q
at 10m30s edit change schedule=a every=2m
`
	pausedAndDown = `simulate v1
engine standby=yes
run 1h
schedule a every=1m queue=q
at 10m30s edit pause schedule=a
at 20m30s down for=1m
`
)
