package htmlreport

import "encoding/json"

// run is the data of the page. Instants are milliseconds of true time since
// the start, durations milliseconds. On-time fires cost nothing: they are runs,
// and what is out of the ordinary is one row each.
type run struct {
	Title     string     `json:"title"`
	File      string     `json:"file"`
	Verdict   verdict    `json:"verdict"`
	Seed      string     `json:"seed"`
	Digest    string     `json:"digest"`
	Start     int64      `json:"start"` // Unix time
	Simulated int64      `json:"simulated"`
	Quiet     int64      `json:"quiet"` // when the faults are over
	Events    int64      `json:"events"`
	Leading   string     `json:"leading"` // how it was led
	Faults    []fault    `json:"faults"`
	Stories   [][]line   `json:"stories"` // of each fault, and of none
	Processes []*process `json:"processes"`
	Schedules []schedule `json:"schedules"`
	Queues    []queue    `json:"queues"`
	Outboxes  []outbox   `json:"outboxes"`
	Depth     [][2]int64 `json:"depth"`  // of all queues
	Strays    [][2]int64 `json:"strays"` // jobs of no schedule: when, how many
	Log       []entry    `json:"log"`
	Reasons   reasons    `json:"reasons"`
	Against   against    `json:"against"`
	Checks    []check    `json:"checks"`
	Marks     []mark     `json:"marks"`
	Failures  []failure  `json:"failures"`
	Unmet     []string   `json:"unmet"`
	Excused   []string   `json:"excused"`
	Merged    *merged    `json:"merged"`
	Commands  []string   `json:"commands"`
	Shrink    string     `json:"shrink"` // the command, where a rule was broken
	Shrunk    *shrunk    `json:"shrunk"` // or what it came to
	Scenario  string     `json:"scenario"`
	Recording bool       `json:"recording"` // of a journal, which knows of no faults, processes or leases
}

type verdict struct {
	Word   string `json:"word"` // "" where the difference says it all
	Passed bool   `json:"passed"`
	Says   string `json:"says"`
	Lede   []part `json:"lede"`
}

// part is a part of a text that may lead to something on the timeline.
type part struct {
	Text string `json:"text"`
	Look string `json:"look,omitempty"` // its key
}

type fault struct {
	At     int64  `json:"at"`
	End    int64  `json:"end"`
	Short  string `json:"short"`
	Say    string `json:"say"`
	Text   string `json:"text"`
	Effect string `json:"effect"`
	Causes []int  `json:"causes"` // what followed, in the log
}

// line is a sentence, and the rule behind it.
type line struct {
	T     int64  `json:"t"`
	Text  string `json:"text"`
	Rule  string `json:"rule,omitempty"`
	Grave bool   `json:"grave,omitempty"`
}

// process is a lane: a process with its runner, or the store where that has a
// clock of its own that was wrong.
type process struct {
	Name   string   `json:"name"`
	Runs   bool     `json:"runs"`
	Leases []lease  `json:"leases"`
	Clock  []rate   `json:"clock"`
	Away   []away   `json:"away"`
	Bounds []bound  `json:"bounds"`
	Marks  []signal `json:"marks"`
}

type lease struct {
	Term  int64  `json:"term"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	End   string `json:"end"`
	Cause int    `json:"cause"`
}

type rate [3]int64 // from when, offset, drift in parts per million

type away struct {
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Kind  string `json:"kind"` // down, crash, pause
	After string `json:"after"`
	Cause int    `json:"cause"`
}

// bound is when a process ran, but not as it would have: its host throttled it,
// or it was cut off from the store.
type bound struct {
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Kind  string `json:"kind"`  // throttled, cut off
	Fault int    `json:"fault"` // of the faults
}

type signal struct {
	T     int64  `json:"t"`
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Rule  string `json:"rule,omitempty"`
	Cause int    `json:"cause"`
}

type schedule struct {
	Name   string `json:"name"`
	Spec   string `json:"spec"`
	Every  int64  `json:"every"`
	Queue  string `json:"queue"`
	Missed string `json:"missed"` // what becomes of boundaries that were missed, in a few words
	Policy string `json:"policy"` // its other policies, as the words of a scenario
	Rules  []line `json:"rules"`  // and what they do

	Due        int64 `json:"due"` // the next five
	OnTime     int64 `json:"onTime"`
	Early      int64 `json:"early"`
	Late       int64 `json:"late"`
	FiredAgain int64 `json:"firedAgain"`
	Skipped    int64 `json:"skipped"`
	Longest    int64 `json:"longest"` // wait from boundary to fire, in true time
	Failed     int64 `json:"failed"`
	Dead       int64 `json:"dead"`

	Undelivered int64    `json:"undelivered"`
	Outboxes    []string `json:"outboxes"` // that it delivers to

	Turns    []signal   `json:"turns"`
	Outcomes []*outcome `json:"outcomes"` // of its jobs, but for those that came to the usual
	Untold   bool       `json:"untold"`   // there are more

	Runs  []onTime  `json:"runs"`
	Fires []fire    `json:"fires"`
	Skips []skip    `json:"skips"`
	Tries []attempt `json:"tries"`
	Holds []hold    `json:"holds"`

	// Ghosts are the fires of the run that is compared with, that this one has at
	// another time or never: the first, how long each came after the one before,
	// how many.
	Ghosts [][3]int64 `json:"ghosts,omitempty"`
}

// onTime is a run of boundaries that fired on time: the first, the interval,
// how many; the least and the most time that one waited, below 0 of one that came
// before its boundary.
type onTime [5]int64

// fire is one or several boundaries that fired, not on time or again: all at
// once or, spread, each as late or as early as the one before.
type fire struct {
	first, step, count, at int64
	kind                   string // late, early, again
	process                int
	term                   int64
	cause                  int
	spread                 bool  // over several ticks, evenly or merged
	since                  int64 // the first of them
}

func (f fire) MarshalJSON() ([]byte, error) {
	row := []any{f.first, f.step, f.count, f.at, f.kind, f.process, f.term, f.cause}
	if f.spread {
		row = append(row, f.since)
	}
	return json.Marshal(row)
}

type skip struct {
	first, step, count, at int64
	reason                 string
	cause                  int
}

func (s skip) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{s.first, s.step, s.count, s.at, s.reason, s.cause})
}

// attempt is one that failed, a job's death, or that of a delivery.
type attempt struct {
	at       int64
	kind     string // failed, dead, undelivered
	number   int
	boundary int64
	count    int64 // of those that were merged
	why      string
}

func (a attempt) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{a.at, a.kind, a.number, boundaryOrNull(a.boundary), a.count, a.why})
}

type hold struct {
	at     int64
	reason string
	cause  int
}

func (h hold) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.at, h.reason, h.cause}) }

// outbox has a lane of the tries of its deliveries.
type outbox struct {
	Name      string  `json:"name"`
	Delivered int64   `json:"delivered"`
	Retried   int64   `json:"retried"`
	Dead      int64   `json:"dead"`
	Tries     []tryOf `json:"tries"`
}

type queue struct {
	Name    string     `json:"name"`
	Outbox  bool       `json:"outbox,omitempty"`
	Done    int64      `json:"done"`
	Retried int64      `json:"retried"`
	Dead    int64      `json:"dead"`
	Depth   [][2]int64 `json:"depth"` // how many jobs wait, from when on
}

// entry is an event that led to another, in words.
type entry struct {
	T     int64  `json:"t"`
	Kind  string `json:"kind"`
	Lane  string `json:"lane"`
	Text  string `json:"text"`
	Rule  string `json:"rule,omitempty"`
	Fault int    `json:"fault"` // of the faults
	Cause int    `json:"cause"` // the entry before it; -1: none
}

type reasons struct {
	Cap     int64 `json:"cap"`
	Policy  int64 `json:"policy"`
	Pause   int64 `json:"pause"`
	Hours   int64 `json:"hours,omitempty"`
	Overlap int64 `json:"overlap,omitempty"`
	Missed  int64 `json:"missed,omitempty"`
}

// against is the comparison with another run, the calm one or, of a what-if, the
// scenario as it is.
type against struct {
	Calm        bool         `json:"calm"`
	WhatIf      bool         `json:"whatIf"`
	Differences []difference `json:"differences"`
	Why         []line       `json:"why"`
}

// difference is what came to something else, of a schedule or, without a name,
// of all.
type difference struct {
	Schedule string `json:"schedule,omitempty"`
	What     string `json:"what"`
	First    int64  `json:"first"`
	Second   int64  `json:"second"`
	By       int64  `json:"by,omitempty"`
}

type check struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Count int64  `json:"count"`
}

type mark struct {
	ID      string `json:"id"`
	About   string `json:"about"`
	Reached int64  `json:"reached"`
}

type failure struct {
	Key       string `json:"key"`
	T         int64  `json:"t"`
	Invariant string `json:"invariant"`
	Schedule  string `json:"schedule"`
	Word      string `json:"word"` // for a flag
	Lane      string `json:"lane"`
	Title     string `json:"title"`
	Says      string `json:"says"` // the rule that was broken
	Detail    string `json:"detail"`
	Sides     []line `json:"sides"` // what contradicts each other
	Cause     int    `json:"cause"`
}

// shrunk is a scenario that is less and fails alike.
type shrunk struct {
	Text     string   `json:"text"`
	Says     string   `json:"says"`
	Commands []string `json:"commands"`
}

// merged says how many marks stand for how many, where they were too many.
type merged struct {
	Rows int `json:"rows"`
	Of   int `json:"of"`
}
