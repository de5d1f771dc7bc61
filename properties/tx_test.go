package properties_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/store"
)

// txRun plays transactions, and between and within them what others do.
type txRun struct {
	queueRun
	rows   map[string]txRow
	writes int
}

// drawTxEdit draws an edit of one of few schedules, without a grid of its own.
func drawTxEdit(t *rapid.T) operation {
	name := pick(t, "a", "b")
	return pick[operation](t,
		schedule{Name: name, Every: pick(t, "1m", "1m", "60s", "1h"), Queue: pick(t, queueNames...)},
		unschedule{name}, pause{name}, resume{name, pick(t, false, true)},
	)
}

// others is an edit of a schedule that belongs to no transaction.
func (r *txRun) others(t *rapid.T) {
	o := draw(t, drawTxEdit)
	before := r.snapshot()
	a := o.play(r.world).(answer)
	require.Empty(t, a.Err)
	told, wrote := edit(r.rows, o)
	require.Equal(t, wrote, !bytes.Equal(before, r.snapshot()), "written") // what is so already is not (C25)
	if b, ok := a.Value.(bool); ok {
		require.Equal(t, told, b)
	}
	if name := nameOf(o); wrote {
		if row, ok := r.rows[name]; ok {
			r.writes++
			row.write = r.writes
			r.rows[name] = row
		}
	}
}

func nameOf(o operation) string {
	switch o := o.(type) {
	case schedule:
		return o.Name
	case unschedule:
		return o.Name
	case pause:
		return o.Name
	default:
		return o.(resume).Name
	}
}

// stageEdit stages an edit, which answers what the overlay says.
func (r *txRun) stageEdit(t *rapid.T, tx *tickonce.Tx, m *txModel) {
	o := draw(t, drawTxEdit)
	var got bool
	var err error
	switch o := o.(type) {
	case schedule:
		_, err = tx.Schedule(o.Name, "@every "+o.Every, o.Queue, []byte(o.Name), o.options())
		got = true
	case unschedule:
		got, err = tx.Unschedule(o.Name)
	case pause:
		got, err = tx.Pause(o.Name)
	case resume:
		got, err = tx.Resume(o.Name, tickonce.ResumeOptions{CatchUp: o.CatchUp})
	}
	require.NoError(t, err)
	m.touch(r.rows, nameOf(o))
	told, wrote := edit(m.rows, o)
	require.Equal(t, told, got)
	if wrote {
		m.wrote[nameOf(o)] = true
	}
}

func (r *txRun) stageLookup(t *rapid.T, tx *tickonce.Tx, m *txModel) {
	name := choose(t, "name", "a", "b")
	s, ok, err := tx.Lookup(name)
	require.NoError(t, err)
	m.touch(r.rows, name)
	row, want := m.rows[name]
	require.Equal(t, want, ok)
	if ok {
		require.Equal(t, "@every "+row.as.Every, s.Spec)
		require.Equal(t, row.as.Queue, s.Queue)
		require.Equal(t, row.paused, s.Paused == tickonce.PausedByUser)
	}
}

func (r *txRun) stageSettle(t *rapid.T, tx *tickonce.Tx, m *txModel) {
	claim, ok := latest(r.claims, choose(t, "which", 0, 0, 1, 2))
	if !ok {
		return
	}
	fail := rapid.Bool().Draw(t, "fail")
	var err error
	if fail {
		err = tx.Fail(claim, errFailed)
	} else {
		err = tx.Ack(claim)
	}
	if !m.end(claim.ID) {
		require.ErrorIs(t, err, tickonce.ErrClaimLost)
		return
	}
	require.NoError(t, err)
	m.settles = append(m.settles, modelSettle{claim.ID, claim.Attempt, fail})
}

// stageEnd stages the end of a job, live or dead; which it must be shows at
// the commit.
func (r *txRun) stageEnd(t *rapid.T, tx *tickonce.Tx, m *txModel) *tickonce.TxJob {
	id, j := r.some(t)
	how := "cancel"
	if j == nil || j.state == store.Dead {
		how = choose(t, "how", "cancel", "requeue", "requeue", "purge", "purge")
	}
	var err error
	var again *tickonce.TxJob
	switch how {
	case "cancel":
		err = tx.Cancel(r.queue, id)
	case "requeue":
		again, err = tx.Requeue(r.queue, id)
	case "purge":
		err = tx.Purge(r.queue, id)
	}
	if !m.end(id) {
		require.ErrorIs(t, err, tickonce.ErrNotFound)
		return nil
	}
	require.NoError(t, err)
	list := map[string]*[]tickonce.JobID{"cancel": &m.cancels, "requeue": &m.requeues, "purge": &m.purges}[how]
	*list = append(*list, id)
	return again
}

func (r *txRun) stageEnqueue(t *rapid.T, tx *tickonce.Tx, m *txModel) *tickonce.TxJob {
	key := choose(t, "key", "", "", "key")
	j, err := tx.Enqueue(r.queue, nil, tickonce.EnqueueOptions{Key: key, MaxAttempts: 2, Visibility: 10 * time.Millisecond})
	require.NoError(t, err)
	require.Zero(t, j.ID(), "before the commit")
	m.inserts = append(m.inserts, modelJob{key: key, most: 2, visibility: 10, backoff: 60_000, expiresAt: never})
	return j
}

var errOfBody = errors.New("of the body")

// transact plays one transaction.
func (r *txRun) transact(t *rapid.T) {
	m := newTxModel()
	var requeued, inserted []*tickonce.TxJob
	var before []byte
	ending := ""
	err := func() (err error) {
		defer func() {
			if p := recover(); p == errOfBody {
				err = errOfBody
			} else if p != nil {
				panic(p)
			}
		}()
		return r.engine().Tx(ctx, func(tx *tickonce.Tx) error {
			for range rapid.IntRange(0, 6).Draw(t, "operations of the transaction") {
				switch choose(t, "operation", "edit", "edit", "look", "settle", "end", "enqueue", "other's edit", "other's end", "other's claim", "clock") {
				case "edit":
					r.stageEdit(t, tx, m)
				case "look":
					r.stageLookup(t, tx, m)
				case "settle":
					r.stageSettle(t, tx, m)
				case "end":
					if again := r.stageEnd(t, tx, m); again != nil {
						requeued = append(requeued, again)
					}
				case "enqueue":
					inserted = append(inserted, r.stageEnqueue(t, tx, m))
				case "other's edit":
					r.others(t)
				case "other's end":
					r.cancel(t)
				case "other's claim":
					r.claim(t)
				case "clock":
					draw(t, drawMilliseconds).play(r.world)
				}
			}
			before = r.snapshot()
			switch ending = choose(t, "ending", "commit", "commit", "commit", "error", "panic"); ending {
			case "error":
				return errOfBody
			case "panic":
				panic(errOfBody)
			}
			return nil
		})
	}()
	if ending != "commit" {
		require.Equal(t, errOfBody, err)
		require.Equal(t, before, r.snapshot(), "a transaction that was given up changed something")
		return
	}
	rows, queue, refused := m.commit(r.rows, r.model, r.now(), &r.writes)
	if refused != nil {
		require.ErrorIs(t, err, refused)
		require.Equal(t, before, r.snapshot(), "a refused transaction changed something")
		return
	}
	require.NoError(t, err)
	r.rows, r.model = rows, queue
	r.name(t, requeued, inserted, m.inserts)
}

// name gives the new jobs of the model their ids: first those requeued, then
// those inserted, each as it was staged.
func (r *txRun) name(t *rapid.T, requeued, inserted []*tickonce.TxJob, inserts []modelJob) {
	fresh := requeued
	for i, j := range inserted {
		if !j.Existing() {
			fresh = append(fresh, j)
			continue
		}
		defer func() { require.Equal(t, r.model.keyed(inserts[i].key).id, j.ID()) }()
	}
	nameless := r.model.jobs[len(r.model.jobs)-len(fresh):]
	for i, j := range nameless {
		require.Zero(t, j.id)
		j.id = fresh[i].ID()
		require.NotZero(t, j.id)
	}
}

func TestI7O7S8TransactionsHappenWhollyOrNotAtAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := tickonce.Config{Limits: tickonce.Limits{QueueLength: queueLimit}}
		r := &txRun{queueRun: queueRun{world: newWorld(t, c, memory, 1), queue: queueNames[0]}, rows: map[string]txRow{}}
		t.Repeat(map[string]func(*rapid.T){
			"transaction": r.transact, "transaction more": r.transact, "enqueue": r.enqueue, "claim": r.claim,
			"settle": r.settle, "edit": r.others,
			"": func(t *rapid.T) {
				r.check(t)
				n := 0
				for s, err := range r.engine().Schedules(ctx) {
					require.NoError(t, err)
					row, ok := r.rows[s.Name]
					require.True(t, ok, s.Name)
					require.Equal(t, "@every "+row.as.Every, s.Spec)
					require.Equal(t, row.as.Queue, s.Queue)
					require.Equal(t, row.paused, s.Paused == tickonce.PausedByUser)
					n++
				}
				require.Len(t, r.rows, n)
			},
		})
	})
}
