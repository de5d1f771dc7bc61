package wire

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/store"
)

// ABI is the version of what the exports of the guest mean.
const ABI = 1

// MaxBlock is how many bytes a host can hand over in one argument.
const MaxBlock = 1 << 30

// Server answers the calls of one handle with an engine in memory of its own,
// whose clock stands wherever the latest call says. It is not safe for
// concurrent use.
type Server struct {
	engine   *memengine.Engine
	recovery memengine.Recovery
	shared   bool // the engine is another's, with a clock of its own
	now      clock
	broken   bool // it panicked

	request Request // of the latest call, and what was made of it: kept for the next one
	answer  Reply
	reply   []byte
	out     []byte

	claims  tokens[Claim, *tickonce.Job] // handed out by [OpClaim]
	locks   tokens[int64, *tickonce.Lock]
	runner  *tickonce.Runner
	workers []*worker               // in the order in which they began
	runs    []*run                  // the same
	inHand  map[Claim]*tickonce.Job // of the runs, and those that are lent
	lastID  int32                   // of workers
	lastRun int64
}

// clock is the clock of a handle.
type clock struct{ at time.Time }

func (c *clock) Now() time.Time { return c.at }

func (c *clock) After(time.Duration) <-chan time.Time {
	panic("wire: nothing waits in a guest")
}

var background = context.Background()

// Open opens a handle at an instant: an empty one, or one with the state of a
// snapshot and of the records of the journal behind it. Its errors are
// [*RequestError], [tickonce.ErrInvalidOption] and [tickonce.ErrSnapshot].
func Open(now float64, config, snapshot, log []byte) (*Server, error) {
	var c Config
	if err := decode(config, &c, visitConfig); err != nil {
		return nil, err
	}
	s := &Server{inHand: map[Claim]*tickonce.Job{}}
	if err := s.set(now); err != nil {
		return nil, err
	}
	ec := tickonce.Config{
		Clock: &s.now, Seed: c.Seed, Owner: c.Owner, Batch: c.Batch, LeaseTTL: c.LeaseTTL, ClockRepair: c.ClockRepair,
		OnTime: c.OnTime, Details: c.Details, Limits: c.Limits,
	}
	if ec.Owner == "" {
		ec.Owner = "tickonce" // nobody else has the store
	}
	var err error
	if ec.Zones, err = zones(c.Zones); err != nil {
		return nil, err
	}
	if c.Events {
		ec.Observer = s.event
	}
	durable := memengine.Durable{Snapshot: snapshot, Log: log}
	if c.Journal {
		durable.Journal = (*journal)(s)
	}
	s.engine, s.recovery, err = memengine.Open(ec, durable)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Share returns a server for an engine that its own program runs, under a clock
// of its own: the instants of the calls only say which claims and locks have
// lapsed. It refuses what runs an engine, [OpStart] to [OpRecovery], and it
// is not stepped.
func Share(engine *memengine.Engine) *Server {
	return &Server{engine: engine, shared: true, inHand: map[Claim]*tickonce.Job{}}
}

// Lend lets calls name the claim of a job that the program of a shared engine has
// in hand, until it takes it back. It settles the job itself.
func (s *Server) Lend(job *tickonce.Job) (back func()) {
	s.inHand[tokenOf(job)] = job
	return func() { delete(s.inHand, tokenOf(job)) }
}

// Encode is the configuration as JSON.
func (c *Config) Encode() []byte { return encode(nil, c, visitConfig) }

var errUnknownZone = errors.New("it is none of the zones in the configuration")

// zones finds the zones of a configuration.
func zones(known []Zone) (func(string) (*time.Location, error), error) {
	found := map[string]*time.Location{}
	for _, z := range known {
		loc, err := time.LoadLocationFromTZData(z.Name, z.Data)
		if err != nil || z.Name == "" {
			return nil, &RequestError{"zones", "has " + quoted(z.Name) + ", which is no time zone in the format TZif"}
		}
		found[z.Name] = loc
	}
	return func(name string) (*time.Location, error) {
		if loc := found[name]; loc != nil {
			return loc, nil
		}
		return nil, errUnknownZone
	}, nil
}

// set sets the clock for a call: milliseconds since the epoch, of which a
// fraction is rounded down. What the call before put out goes.
func (s *Server) set(now float64) error {
	s.Drop()
	ms := math.Floor(now)
	if !(math.Abs(ms) <= float64(store.MaxInstant)) { // NaN, too
		return &RequestError{"now", "is out of range, want milliseconds since the epoch within ±(2^53 - 1)"}
	}
	s.now.at = time.UnixMilli(int64(ms)).UTC()
	return nil
}

// Call answers a request, both as JSON, at an instant. The reply is good until the
// next call; what it put out is in Out. An error is an [*Error], and then nothing
// has changed.
func (s *Server) Call(now float64, op Op, request []byte) (reply []byte, err error) {
	err = s.guarded(func() error {
		if err := s.set(now); err != nil {
			return err
		}
		s.request, s.answer = Request{}, Reply{}
		if err := s.request.parse(op, request); err != nil {
			return err
		}
		if s.shared && OpStart <= op && op <= OpRecovery {
			return &RequestError{"the op", "runs an engine, but this one is run by its own program"}
		}
		if err := ops[op].call(s, &s.request, &s.answer); err != nil {
			return err
		}
		s.reply = encode(emptied(s.reply), &s.answer, visitReply)
		reply = s.reply
		return nil
	})
	return reply, err
}

// Snapshot is the state as bytes, for [Open]; see [memengine.Engine.Snapshot].
func (s *Server) Snapshot() (snapshot []byte, err error) {
	err = s.guarded(func() error {
		snapshot, err = s.engine.Snapshot()
		return err
	})
	return snapshot, err
}

// Out is what the last Call or Step put out, good until the next.
func (s *Server) Out() []byte { return s.out }

// Drop drops that, as a call does that is refused before it gets here.
func (s *Server) Drop() { s.out = emptied(s.out) }

// emptied is the buffer for the next call.
func emptied(buffer []byte) []byte {
	if cap(buffer) > keptBuffer {
		return nil
	}
	return buffer[:0]
}

// guarded runs one call. After a panic the handle is of no more use: rows or
// locks may be half changed.
func (s *Server) guarded(call func() error) (err error) {
	if s.broken {
		return &Error{CodeInternal, "the handle is broken by an earlier fault: restore its last snapshot"}
	}
	defer func() {
		if p := recover(); p != nil {
			s.broken = true
			text := "a fault of the guest"
			if e, ok := p.(error); ok {
				text += ": " + e.Error()
			} else if t, ok := p.(string); ok {
				text += ": " + t
			}
			err = &Error{CodeInternal, text}
		}
	}()
	if err := call(); err != nil {
		return ErrorOf(err)
	}
	return nil
}

const (
	keptBuffer = 4 << 20  // bytes of a buffer that is kept between calls
	fullOut    = 16 << 20 // a step rests once so much was put out
)

// journal puts out the records of the journal.
type journal Server

func (j *journal) Append(record []byte) error {
	j.out = (&Record{Kind: RecordJournal, Data: record}).Append(j.out)
	return nil
}

func (s *Server) event(e tickonce.Event) {
	event := Event{Event: e}
	if e.Err != nil {
		event.Error = e.Err.Error()
	}
	s.out = (&Record{Kind: RecordEvent, Event: &event}).Append(s.out)
}

// tokens keep what the host names by a token, until it has lapsed.
type tokens[K comparable, V any] struct {
	of    map[K]V
	sweep int // how many there may be before those that have lapsed go
}

func (t *tokens[K, V]) add(key K, v V, live func(V) bool) {
	if t.of == nil {
		t.of = map[K]V{}
	}
	if t.of[key] = v; len(t.of) > max(t.sweep, 1024) {
		for key, v := range t.of { // in whatever order; what has lapsed is refused, unless the clock goes back
			if !live(v) {
				delete(t.of, key)
			}
		}
		t.sweep = 2 * len(t.of)
	}
}
