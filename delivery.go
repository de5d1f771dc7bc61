package tickonce

import (
	"strconv"
	"sync"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

const (
	maxDeliveries = 1000
	maxSummary    = 1 << 10
)

// said is what a run says beside its outcome.
type said struct {
	mu      sync.Mutex
	ends    int  // that are being written
	over    bool // the run has ended
	lost    bool // so was its claim, which was told
	deliver []store.Insert
	summary string
}

// Deliver stages a delivery of the job's result: an entry of the outbox, which
// is written together with the ack of the job, or not at all. So a run that
// fails delivers nothing, and what a run delivers is delivered though the
// process ends right after it (X1, X2). The payload is copied.
//
// An entry is handed to the outbox's deliver function as any other, by
// [Outbox.Run] or [Outbox.RunOnce], with Schedule and Boundary of the job and
// its id as Origin. It has 3 tries of 30 s each. After a transient failure the
// next one comes 1 s later, then 2 s; a permanent one is the last (X6, X7). What
// becomes of it is no matter of the job or its schedule any more: the run
// was a success.
//
// The errors are [ErrInvalidName] and [ErrReservedName] of the outbox's name,
// [ErrLimit] of the payload, [ErrInvalidOption] of more than 1,000 deliveries of
// one run or 1 GiB of payloads, and [ErrClaimLost] after the run has ended, and
// while its end is being written, which may be on another goroutine. An outbox
// that has no room when the ack is written fails the run instead, with
// [ErrLimit].
func (j *Job) Deliver(outbox string, payload []byte) error {
	if err := j.check(); err != nil {
		return err
	}
	o := j.engine.Outbox(outbox)
	if o.err != nil {
		return o.err
	}
	if err := j.engine.checkPayload(payload); err != nil {
		return err
	}
	entry := store.Insert{
		Queue: o.queue, Payload: cloneBytes(payload), Stamps: core.DeliveryStamps, RunAt: store.None,
		From: &store.Source{
			Schedule: j.Schedule, ScheduleID: j.scheduleID, FireAt: store.None, Origin: j.ID, TimeoutMS: core.DeliveryTimeoutMS,
		},
	}
	if !j.Boundary.IsZero() {
		entry.From.FireAt = instantOf(j.Boundary)
	}
	j.said.mu.Lock()
	defer j.said.mu.Unlock()
	switch {
	case j.said.over || j.said.ends > 0:
		return ErrClaimLost
	case len(j.said.deliver) == maxDeliveries:
		return &OptionError{Option: "the deliveries", Problem: "of one run would be more than " + strconv.Itoa(maxDeliveries)}
	case payloadBytes(j.said.deliver)+int64(len(payload)) > j.engine.batchPayload:
		return &OptionError{Option: "the deliveries", Problem: "of one run would be more than " +
			strconv.FormatInt(j.engine.batchPayload, 10) + " bytes"}
	}
	j.said.deliver = append(j.said.deliver, entry)
	return nil
}

// Summarize says in a few words what the run did, for [Engine.Details] and the
// history: at most 1 KiB of the text are kept. The last call counts; after the
// run has ended none does.
func (j *Job) Summarize(text string) {
	if j.check() != nil {
		return
	}
	text = core.CleanText(text, maxSummary)
	j.said.mu.Lock()
	defer j.said.mu.Unlock()
	if !j.said.over {
		j.said.summary = text
	}
}

// deliveries are those that the run has staged.
func (j *Job) deliveries() []store.Insert {
	j.said.mu.Lock()
	defer j.said.mu.Unlock()
	return j.said.deliver
}

func (j *Job) summary() string {
	j.said.mu.Lock()
	defer j.said.mu.Unlock()
	return j.said.summary
}

// hush lets the run deliver nothing more while its end is being written, until
// speak.
func (j *Job) hush() {
	j.said.mu.Lock()
	defer j.said.mu.Unlock()
	j.said.ends++
}

// speak is the end of a hush: if the end was not written, the run goes on.
func (j *Job) speak() {
	j.said.mu.Lock()
	defer j.said.mu.Unlock()
	j.said.ends--
}

// end lets the run say nothing more.
func (j *Job) end() {
	j.said.mu.Lock()
	defer j.said.mu.Unlock()
	j.said.over = true
}
