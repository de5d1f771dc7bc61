package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/memengine"
	"github.com/tickonce/tickonce/wasm/wire"
)

// Config configures an engine. Its zero value works.
type Config struct {
	// The clock, the observer and the numbers are those of a native engine.
	// Poll has no use, since nobody else writes to the engine's store, and Zones
	// must be nil: functions do not pass into the guest.
	tickonce.Config

	// ZoneNames are the time zones, beside UTC, that active hours may name
	// (X10).
	ZoneNames []string

	// Zoneinfo has the data of the zones, as files of the IANA database by their
	// names. Default: the system's, in /usr/share/zoneinfo. A zip.Reader on the
	// zoneinfo.zip of a Go installation is another.
	Zoneinfo fs.FS

	// Snapshot is what [Engine.Snapshot] returned, and Log what the journal was
	// given since, as in [memengine.Durable]. Snapshots and logs of native
	// engines are the same.
	Snapshot, Log []byte

	// Journal gets a record of every write, before anything else is made of the
	// write: before a call answers, a handler begins, or the observer is told
	// (D2). While it refuses, calls answer its error, with their outcome unknown,
	// and nothing goes on. The engine's loops try again after 100, 200 and 400
	// ms, and then every 5 s, until it takes the record. It is called under the
	// engine's lock. Nil: none is kept.
	Journal memengine.Journal

	// Reopen is asked for the last snapshot and the whole log behind it when an
	// instance has died, to open another, which does not have the claims of the
	// first. It is called under the engine's lock, at the next call, and again
	// after an error, such as that of a log whose last record is torn, which is to
	// be cut off if there is a journal. Nil: the engine has died as well.
	Reopen func() (snapshot, log []byte, err error)
}

// withDefaults is the configuration with its defaults, and as the guest gets it.
func (c Config) withDefaults() (Config, []byte, error) {
	var err error
	if c.Zones != nil {
		err = optionError("Zones", "is set, want ZoneNames in its place")
	}
	defaults, faults := c.Config.WithDefaults()
	if err = errors.Join(err, faults); err != nil {
		return c, nil, err
	}
	c.Config = defaults
	if c.Zoneinfo == nil {
		c.Zoneinfo = os.DirFS("/usr/share/zoneinfo")
	}
	w := wire.Config{
		Seed: c.Seed, Owner: c.Owner, Batch: c.Batch, LeaseTTL: c.LeaseTTL, ClockRepair: c.ClockRepair, OnTime: c.OnTime,
		Details: c.Details, Limits: c.Limits, Journal: c.Journal != nil, Events: c.Observer != nil,
	}
	for _, name := range c.ZoneNames {
		data, err := fs.ReadFile(c.Zoneinfo, name)
		if err != nil {
			return c, nil, optionError("ZoneNames", "has "+strconv.Quote(name)+", whose data is not to be had: "+err.Error())
		}
		w.Zones = append(w.Zones, wire.Zone{Name: name, Data: data})
	}
	return c, w.Encode(), nil
}

// Open returns an engine in an instance of its own, empty or with the state that
// the configuration has, and reports how much of the log was used, as
// [memengine.Open] does: where Recovery.Torn is set, cut the log there before the
// journal appends to it. Its errors are joined [*tickonce.OptionError]s,
// [tickonce.ErrSnapshot], and what the instance dies of, such as a state that
// [Options.Memory] has no room for.
func (m *Module) Open(ctx context.Context, c Config) (*Engine, memengine.Recovery, error) {
	c, setup, err := c.withDefaults()
	if err != nil {
		return nil, memengine.Recovery{}, err
	}
	e := &Engine{module: m, config: c, setup: setup, runs: map[int64]*run{}}
	recovery, err := e.open(ctx, c.Snapshot, c.Log)
	if err != nil {
		return nil, recovery, err
	}
	e.config.Snapshot, e.config.Log = nil, nil
	return e, recovery, nil
}

// open makes an instance with the state.
func (e *Engine) open(ctx context.Context, snapshot, log []byte) (memengine.Recovery, error) {
	i, err := e.module.start(ctx)
	if err != nil {
		return memengine.Recovery{}, err
	}
	recovery := memengine.Recovery{}
	if err = i.open(ctx, e.now(), e.setup, snapshot, log); err == nil {
		var text []byte
		if text, err = i.call(ctx, e.now(), wire.OpRecovery, []byte("{}")); err == nil {
			var reply *wire.Reply
			if reply, err = wire.ParseReply(text); err == nil && reply.Recovery != nil {
				recovery = *reply.Recovery
			}
		}
	}
	if err != nil {
		i.discard()
		return recovery, refused("open", err)
	}
	e.guest, e.opened = i, e.opened+1
	return recovery, nil
}

// now is the time as the guest is told it.
func (e *Engine) now() float64 { return float64(e.config.Clock.Now().UnixMilli()) }
