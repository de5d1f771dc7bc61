package wire

import (
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
)

// Op is what a call asks for. The numbers are part of the ABI.
type Op int32

// The calls, with the fields of [Request] that each takes, and those of
// [Reply] that it answers. Where a queue is named, Outbox names the queue of an
// outbox instead.
const (
	OpSchedule    Op = iota + 1 // Name, Spec, Queue, Payload, Schedule → Schedule
	OpUnschedule                // Name → Done
	OpPause                     // Name → Done
	OpResume                    // Name, CatchUp → Done
	OpTrigger                   // Name → Job
	OpLookup                    // Name → Schedule, or none
	OpSchedules                 // After, Max → Schedules, in the order of names
	OpEnqueue                   // Queue or Outbox, Payload, Enqueue → Job
	OpClaim                     // Queue, Worker, Max → records of what was begun
	OpAck                       // Claims → Acked
	OpRetry                     // Claim, Error → nothing
	OpFail                      // Claim, Error → nothing
	OpHeartbeat                 // Claim, For → At: the deadline
	OpDeliver                   // Claim, Outbox, Payload → nothing
	OpSummarize                 // Claim, Text → nothing
	OpCancel                    // Queue, Job → Done
	OpRequeue                   // Queue or Outbox, Job → Job
	OpPurge                     // Queue or Outbox, Jobs → nothing
	OpSweep                     // Queue or Outbox → Count
	OpDead                      // Queue or Outbox, From, Max → Dead, in the order of ids
	OpNextClaim                 // Queue or Outbox → At, or none
	OpQueue                     // Queue or Outbox → Queue
	OpQueues                    // After, Max → Queues, in the order of names
	OpLock                      // Name, Owner, For → Term, At: the expiry; or none
	OpRenewLock                 // Term, For → Done, At
	OpReleaseLock               // Term → Done
	OpHistory                   // Name, Before, Max → Runs
	OpSkips                     // Name, Before, Max → Skips
	OpTotals                    // Name → Totals
	OpWhy                       // Name, Boundary → Why
	OpDetails                   // From, Max → Details, Count: those that were dropped
	OpTx                        // Ops → Results
	OpStart                     // the runner of the schedules → nothing
	OpStop                      // that runner → nothing
	OpWork                      // Queue or Outbox, Work → Worker
	OpStopWork                  // Worker → nothing; its end is a record
	OpEnd                       // Run, Error: none if the handler did it → nothing
	OpRecovery                  // → Recovery: what was found when the handle was opened
	lastOp
)

// MaxPage is how many rows a call answers at most, and how many it answers
// where Max is 0.
const MaxPage = 1000

// Claim is the token of a claim.
type Claim struct {
	Job     tickonce.JobID
	Attempt int32
}

func visitClaim(c *Claim, o *object) {
	whole(o, "job", &c.Job)
	whole(o, "attempt", &c.Attempt)
}

// Failure is why a handler did not do its job, with at most one mark.
type Failure struct {
	Message    string
	Permanent  bool        // see [tickonce.Permanent]
	Transient  bool        // see [tickonce.Transient]
	RetryAfter *RetryAfter // see [tickonce.RetryAfter]
	Panicked   bool        // see [tickonce.Panicked]
}

// RetryAfter is the wait before the next attempt.
type RetryAfter struct{ For time.Duration }

func visitFailure(f *Failure, o *object) {
	o.text("message", &f.Message)
	o.flag("permanent", &f.Permanent)
	o.flag("transient", &f.Transient)
	maybe(o, "retryAfter", &f.RetryAfter, func(r *RetryAfter, o *object) { o.span("forMS", &r.For) })
	o.flag("panicked", &f.Panicked)
	marks := 0
	for _, marked := range [...]bool{f.Permanent, f.Transient, f.RetryAfter != nil, f.Panicked} {
		if marked {
			marks++
		}
	}
	if marks > 1 {
		o.fault("", "has several of permanent, transient, retryAfter and panicked, want one at most")
	}
}

// Request is what a call is asked with: each has fields of its own, see [Op].
type Request struct {
	Name, Spec, Queue, Outbox string
	Owner, Worker, Text       string
	Payload                   []byte

	Schedule tickonce.ScheduleOptions
	Enqueue  tickonce.EnqueueOptions
	Work     tickonce.WorkerConfig
	CatchUp  bool

	After        string
	From, Before int64
	Max          int

	Claim    Claim
	Claims   []Claim
	Error    *Failure
	For      time.Duration
	Job      tickonce.JobID
	Jobs     []tickonce.JobID
	Term     int64
	Boundary time.Time
	WorkerID int32
	Run      int64

	Ops  []TxOp
	Plan bool // of OpTx: write nothing, answer what would come of it
}

// Reply is what a call answers.
type Reply struct {
	Done      bool
	Existing  bool
	Job       tickonce.JobID
	Schedule  *tickonce.Schedule
	Schedules []tickonce.Schedule
	Acked     []bool
	At        time.Time
	Count     int64
	Dead      []tickonce.DeadJob
	Queue     *tickonce.QueueInfo
	Queues    []tickonce.QueueInfo
	Term      int64
	Runs      []tickonce.PastRun
	Skips     []tickonce.PastSkip
	Totals    *Totals
	Why       *tickonce.Why
	WhyText   string
	Details   []tickonce.Detail
	Results   []Reply
	Worker    int32
	Recovery  *memengine.Recovery
}

func visitReply(r *Reply, o *object) {
	o.flag("done", &r.Done)
	o.flag("existing", &r.Existing)
	whole(o, "job", &r.Job)
	maybe(o, "schedule", &r.Schedule, visitSchedule)
	list(o, "schedules", &r.Schedules, visitSchedule)
	flags(o, "acked", &r.Acked)
	o.at("at", &r.At)
	whole(o, "count", &r.Count)
	list(o, "dead", &r.Dead, visitDeadJob)
	maybe(o, "queue", &r.Queue, visitQueueInfo)
	list(o, "queues", &r.Queues, visitQueueInfo)
	whole(o, "term", &r.Term)
	list(o, "runs", &r.Runs, visitPastRun)
	list(o, "skips", &r.Skips, visitPastSkip)
	maybe(o, "totals", &r.Totals, visitTotals)
	maybe(o, "why", &r.Why, visitWhy)
	o.text("whyText", &r.WhyText)
	list(o, "details", &r.Details, visitDetail)
	list(o, "results", &r.Results, visitReply)
	whole(o, "worker", &r.Worker)
	maybe(o, "recovery", &r.Recovery, func(r *memengine.Recovery, o *object) {
		whole(o, "records", &r.Records)
		whole(o, "skipped", &r.Skipped)
		whole(o, "offset", &r.Offset)
		o.text("torn", &r.Torn)
		whole(o, "invalid", &r.Invalid)
	})
}

// Encode is the reply as JSON.
func (r *Reply) Encode() []byte { return encode(nil, r, visitReply) }

// ParseReply reads what [Reply.Encode] wrote.
func ParseReply(text []byte) (*Reply, error) {
	r := &Reply{}
	if err := decode(text, r, visitReply); err != nil {
		return nil, err
	}
	return r, nil
}

// The fields that requests share.
func visitName(r *Request, o *object)   { o.text("name", &r.Name) }
func visitQueue(r *Request, o *object)  { o.text("queue", &r.Queue) }
func visitNothing(*Request, *object)    {}
func visitWorker(r *Request, o *object) { whole(o, "worker", &r.WorkerID) }

func visitAnyQueue(r *Request, o *object) {
	o.text("queue", &r.Queue)
	o.text("outbox", &r.Outbox)
	if !o.writing && r.Queue != "" && r.Outbox != "" {
		o.fault("outbox", "and queue are both set, want one")
	}
}

func visitPage(r *Request, o *object) {
	o.text("after", &r.After)
	whole(o, "max", &r.Max)
}

func visitNamedPage(r *Request, o *object) {
	visitName(r, o)
	whole(o, "before", &r.Before)
	whole(o, "max", &r.Max)
}

// A settled claim has no worker who would look at a mark; a retry may say when.
func visitFailed(op Op) visitor[Request] {
	return func(r *Request, o *object) {
		inner(o, "claim", &r.Claim, visitClaim)
		maybe(o, "error", &r.Error, visitFailure)
		e := r.Error
		if e != nil && (e.Permanent || e.Transient || e.Panicked || e.RetryAfter != nil && op != OpRetry) {
			o.fault("error", "has a mark that is none of "+op.String())
		}
	}
}

func visitClaimed(r *Request, o *object) { inner(o, "claim", &r.Claim, visitClaim) }

// ops are the calls, by their numbers.
var ops [lastOp]struct {
	name  string
	visit visitor[Request]
	call  func(*Server, *Request, *Reply) error
}

func init() { // since a transaction's ops are calls themselves
	add := func(op Op, name string, call func(*Server, *Request, *Reply) error, visits ...visitor[Request]) {
		ops[op].name, ops[op].call = name, call
		ops[op].visit = func(r *Request, o *object) {
			for _, visit := range visits {
				visit(r, o)
			}
		}
	}
	payload := func(r *Request, o *object) { o.bytes("payload", &r.Payload) }
	lasts := func(r *Request, o *object) { o.span("forMS", &r.For) }
	job := func(r *Request, o *object) { whole(o, "job", &r.Job) }
	term := func(r *Request, o *object) { whole(o, "term", &r.Term) }
	failure := func(r *Request, o *object) { maybe(o, "error", &r.Error, visitFailure) }
	rows := func(r *Request, o *object) {
		whole(o, "from", &r.From)
		whole(o, "max", &r.Max)
	}

	add(OpSchedule, "schedule", (*Server).schedule, visitName, func(r *Request, o *object) {
		o.text("spec", &r.Spec)
		o.text("queue", &r.Queue)
		o.bytes("payload", &r.Payload)
		inner(o, "options", &r.Schedule, visitScheduleOptions)
	})
	add(OpUnschedule, "unschedule", (*Server).unschedule, visitName)
	add(OpPause, "pause", (*Server).pause, visitName)
	add(OpResume, "resume", (*Server).resume, visitName, func(r *Request, o *object) { o.flag("catchUp", &r.CatchUp) })
	add(OpTrigger, "trigger", (*Server).trigger, visitName)
	add(OpLookup, "lookup", (*Server).lookup, visitName)
	add(OpSchedules, "schedules", (*Server).schedules, visitPage)
	add(OpEnqueue, "enqueue", (*Server).enqueue, visitAnyQueue, payload, func(r *Request, o *object) {
		inner(o, "options", &r.Enqueue, visitEnqueueOptions)
	})
	add(OpClaim, "claim", (*Server).claim, visitQueue, func(r *Request, o *object) {
		o.text("worker", &r.Worker)
		whole(o, "max", &r.Max)
	})
	add(OpAck, "ack", (*Server).ack, func(r *Request, o *object) { list(o, "claims", &r.Claims, visitClaim) })
	add(OpRetry, "retry", (*Server).retry, visitFailed(OpRetry))
	add(OpFail, "fail", (*Server).fail, visitFailed(OpFail))
	add(OpHeartbeat, "heartbeat", (*Server).heartbeat, visitClaimed, lasts)
	add(OpDeliver, "deliver", (*Server).deliver, visitClaimed, payload, func(r *Request, o *object) { o.text("outbox", &r.Outbox) })
	add(OpSummarize, "summarize", (*Server).summarize, visitClaimed, func(r *Request, o *object) { o.text("text", &r.Text) })
	add(OpCancel, "cancel", (*Server).cancel, visitQueue, job)
	add(OpRequeue, "requeue", (*Server).requeue, visitAnyQueue, job)
	add(OpPurge, "purge", (*Server).purge, visitAnyQueue, func(r *Request, o *object) { numbers(o, "jobs", &r.Jobs) })
	add(OpSweep, "sweep", (*Server).sweep, visitAnyQueue)
	add(OpDead, "dead", (*Server).dead, visitAnyQueue, rows)
	add(OpNextClaim, "nextClaim", (*Server).nextClaim, visitAnyQueue)
	add(OpQueue, "queue", (*Server).queue, visitAnyQueue)
	add(OpQueues, "queues", (*Server).queues, visitPage)
	add(OpLock, "lock", (*Server).lock, visitName, lasts, func(r *Request, o *object) { o.text("owner", &r.Owner) })
	add(OpRenewLock, "renewLock", (*Server).renewLock, term, lasts)
	add(OpReleaseLock, "releaseLock", (*Server).releaseLock, term)
	add(OpHistory, "history", (*Server).history, visitNamedPage)
	add(OpSkips, "skips", (*Server).skips, visitNamedPage)
	add(OpTotals, "totals", (*Server).totals, visitName)
	add(OpWhy, "why", (*Server).why, visitName, func(r *Request, o *object) { o.at("boundary", &r.Boundary) })
	add(OpDetails, "details", (*Server).details, rows)
	add(OpTx, "tx", (*Server).tx, func(r *Request, o *object) {
		list(o, "ops", &r.Ops, visitTxOp)
		o.flag("plan", &r.Plan)
	})
	add(OpStart, "start", (*Server).start, visitNothing)
	add(OpStop, "stop", (*Server).stop, visitNothing)
	add(OpWork, "work", (*Server).work, visitAnyQueue, func(r *Request, o *object) {
		inner(o, "options", &r.Work, visitWorkerConfig)
	})
	add(OpStopWork, "stopWork", (*Server).stopWork, visitWorker)
	add(OpEnd, "end", (*Server).end, failure, func(r *Request, o *object) { whole(o, "run", &r.Run) })
	add(OpRecovery, "recovery", (*Server).recovered, visitNothing)
}

func (op Op) String() string {
	if op > 0 && op < lastOp {
		return ops[op].name
	}
	return "unknown"
}

// ParseOp is the call of that name.
func ParseOp(name string) (Op, bool) {
	for op := Op(1); op < lastOp; op++ {
		if ops[op].name == name {
			return op, true
		}
	}
	return 0, false
}

// Encode is the request of a call as JSON.
func (r *Request) Encode(op Op) []byte { return encode(nil, r, ops[op].visit) }

// ParseRequest reads what [Request.Encode] wrote. What is no such request is a
// [*RequestError].
func ParseRequest(op Op, text []byte) (*Request, error) {
	r := &Request{}
	if err := r.parse(op, text); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Request) parse(op Op, text []byte) error {
	if op <= 0 || op >= lastOp {
		return &RequestError{"the op", "is not known"}
	}
	return decode(text, r, ops[op].visit)
}
