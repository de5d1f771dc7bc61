package tickonce

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/tickonce/tickonce/internal/core"
	"github.com/tickonce/tickonce/store"
)

// Overlap says whether a schedule fires while jobs of its name are live, that
// is pending or claimed, in whatever queue (X9). Boundaries that it keeps from
// firing are skipped.
type Overlap = store.Overlap

// The policies of overlap. Unless it is OverlapAllow, at most one job of the
// schedule's name is claimed at once, and one tick fires at most one boundary.
// A claim that has lapsed is in the way until its job is claimed again, or
// dies: a schedule that moves to another queue waits for the job it left in the
// old one, and one whose job was in hand when its worker was killed waits until
// that claim has lapsed.
const (
	OverlapAllow     = store.Allow
	OverlapSkip      = store.SkipLive  // not while one is pending or claimed
	OverlapBufferOne = store.BufferOne // not while one is pending
)

// ActiveHours are the hours of the day in which a schedule fires (X10): from
// the minute From on, before the minute To, which may lie after midnight. What
// counts is the time at which the runner meets a boundary, not the boundary:
// outside, all that are due are skipped. With From and To equal, and as the
// zero value, it is always.
//
// Where a zone's clocks are turned, an hour in the day that has it twice counts
// twice, and one that is left out does not come.
type ActiveHours struct {
	From, To string // "08:00"; To may be "24:00"
	Zone     string // as "Europe/Berlin", see [Config.Zones]; "": UTC
}

const dayMinutes = 24 * 60

func activeHoursOf(h store.Hours) ActiveHours {
	if h.Start == h.End {
		return ActiveHours{}
	}
	a := ActiveHours{From: timeOfDay(h.Start), To: timeOfDay(h.End), Zone: h.Zone}
	if a.Zone == "" {
		a.Zone = "UTC"
	}
	return a
}

// timeOfDay is the minute of a day as hh:mm.
func timeOfDay(minute uint16) string {
	h, m := byte(minute/60), byte(minute%60)
	return string([]byte{'0' + h/10, '0' + h%10, ':', '0' + m/10, '0' + m%10})
}

// minuteOf reads hh:mm, at most latest.
func minuteOf(option, text string, latest uint16) (uint16, error) {
	digit := func(i int) uint16 { return uint16(text[i] - '0') }
	if len(text) == 5 && text[2] == ':' && digit(0) < 10 && digit(1) < 10 && digit(3) < 6 && digit(4) < 10 {
		if minute := (digit(0)*10+digit(1))*60 + digit(3)*10 + digit(4); minute <= latest {
			return minute, nil
		}
	}
	return 0, &OptionError{
		Option: option, Problem: "is " + strconv.Quote(text) + ", want hh:mm from 00:00 to " + timeOfDay(latest),
	}
}

// resolveHours checks active hours, and finds their zone.
func (e *Engine) resolveHours(a ActiveHours) (store.Hours, error) {
	if a == (ActiveHours{}) {
		return store.Hours{}, nil
	}
	from, err := minuteOf("ActiveHours.From", a.From, dayMinutes-1)
	if err != nil {
		return store.Hours{}, err
	}
	to, err := minuteOf("ActiveHours.To", a.To, dayMinutes)
	if err != nil {
		return store.Hours{}, err
	}
	if a.Zone == "UTC" {
		a.Zone = ""
	}
	if _, err := e.zone(a.Zone); err != nil {
		return store.Hours{}, &OptionError{Option: "ActiveHours.Zone", Problem: "is " + strconv.Quote(a.Zone) + ": " + err.Error()}
	}
	if to %= dayMinutes; from == to {
		return store.Hours{}, nil
	}
	return store.Hours{Start: from, End: to, Zone: a.Zone}, nil
}

// resolvePolicies sets what the options say of overlap, hours, run-once,
// breaker and timeout.
func (e *Engine) resolvePolicies(row *store.Schedule, o ScheduleOptions) error {
	if row.Overlap = o.Overlap; o.Overlap > OverlapBufferOne {
		return &OptionError{Option: "Overlap", Problem: "is " + strconv.Itoa(int(o.Overlap)) + ", want OverlapAllow, OverlapSkip or OverlapBufferOne"}
	}
	var rare store.Rare
	var err error
	if rare.Hours, err = e.resolveHours(o.ActiveHours); err != nil {
		return err
	}
	if row.RunOnce = o.RunOnce; o.RunOnce {
		if o.MaxAttempts > 1 {
			return &OptionError{Option: "MaxAttempts", Problem: "is " + strconv.Itoa(o.MaxAttempts) + ", want 1 or 0 with RunOnce"}
		}
		row.Stamps.MaxAttempts = 1
	}
	switch {
	case o.Breaker < -1 || o.Breaker > 255:
		return &OptionError{Option: "Breaker", Problem: "is " + strconv.Itoa(o.Breaker) + ", want -1 to 255"}
	case o.Breaker == 0:
		row.Breaker = core.BreakerFailures
	default:
		row.Breaker = uint8(max(o.Breaker, 0))
	}
	if rare.TimeoutMS, err = optionMS("Timeout", o.Timeout); err != nil {
		return err
	}
	if rare != (store.Rare{}) {
		row.Rare = &rare
	}
	return nil
}

// zones are those that were asked for.
type zones struct {
	mu    sync.Mutex
	known map[string]*time.Location
}

func (z *zones) find(name string) *time.Location {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.known[name]
}

func (z *zones) add(name string, loc *time.Location) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.known == nil {
		z.known = map[string]*time.Location{}
	}
	z.known[name] = loc
}

var errLocalZone = errors.New("it means another zone on another host")

// zone is the zone of that name. One that is not found is asked for again.
func (e *Engine) zone(name string) (*time.Location, error) {
	switch name {
	case "", "UTC":
		return time.UTC, nil
	case "Local":
		return nil, errLocalZone
	}
	if loc := e.zones.find(name); loc != nil {
		return loc, nil
	}
	find := e.config.Zones
	if find == nil {
		find = time.LoadLocation
	}
	loc, err := find(name)
	if err == nil && loc == nil {
		err = errors.New("unknown time zone")
	}
	if err != nil {
		return nil, err
	}
	e.zones.add(name, loc)
	return loc, nil
}

// minute tells the minute of the day in a zone, for [core.PlanFire].
func (e *Engine) minute(zone string, at store.Instant) (uint16, string) {
	loc, err := e.zone(zone)
	if err != nil {
		return 0, "the zone of the active hours is " + strconv.Quote(zone) + ": " + err.Error()
	}
	hour, minute, _ := time.UnixMilli(int64(at)).In(loc).Clock()
	return uint16(hour*60 + minute), ""
}
