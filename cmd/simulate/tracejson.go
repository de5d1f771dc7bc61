package main

import (
	"encoding/json"
	"strings"

	"github.com/tickonce/tickonce/sim"
)

// eventObject is an event as a line of JSON. What an event does not have is left
// out.
type eventObject struct {
	ID         int64       `json:"id"`
	Kind       string      `json:"kind"`
	At         string      `json:"at"`
	ShownAt    string      `json:"shown_at"` // by the store's clock
	Cause      int64       `json:"cause,omitempty"`
	Since      int64       `json:"since,omitempty"`
	Fault      int         `json:"fault,omitempty"`
	Process    int         `json:"process,omitempty"`
	Worker     string      `json:"worker,omitempty"`
	Schedule   string      `json:"schedule,omitempty"`
	Queue      string      `json:"queue,omitempty"`
	BoundaryAt *string     `json:"boundary_at,omitempty"`
	LastAt     *string     `json:"last_at,omitempty"`
	Count      int64       `json:"count,omitempty"`
	LateMS     int64       `json:"late_ms,omitempty"`
	Again      bool        `json:"again,omitempty"`
	Job        int64       `json:"job,omitempty"`
	Attempt    int         `json:"attempt,omitempty"`
	Term       int64       `json:"term,omitempty"`
	Until      *string     `json:"until,omitempty"`
	ByMS       int64       `json:"by_ms,omitempty"`
	DriftPPM   int64       `json:"drift_ppm,omitempty"`
	Op         string      `json:"op,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Text       string      `json:"text"`
	Why        *noteObject `json:"why,omitempty"`
}

type noteObject struct {
	Text string `json:"text"`
	Rule string `json:"rule"`
}

// object is one event as a line of JSON; why is that of the one asked for.
func (t trace) object(e *sim.Event, why sim.Note) string {
	o := eventObject{
		ID: e.ID, Kind: e.Kind.String(), At: instant(e.At), ShownAt: instant(e.Shown), Cause: e.Cause, Since: e.Since,
		Fault: e.Fault, Process: e.Process, Worker: e.Worker, Schedule: e.Schedule, Queue: e.Queue,
		BoundaryAt: instantOrNull(e.Boundary), LastAt: instantOrNull(e.Last), Count: e.Count, LateMS: e.Late.Milliseconds(), Again: e.Again,
		Job: e.Job, Attempt: e.Attempt, Term: e.Term, Until: instantOrNull(e.Until),
		ByMS: e.By.Milliseconds(), DriftPPM: e.Drift, Op: e.Op, Reason: e.Reason, Text: t.details(e),
	}
	if why.Rule != "" {
		o.Why = &noteObject{why.Text, why.Rule}
	}
	var b strings.Builder
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(o); err != nil {
		panic(err) // it has numbers and texts alone
	}
	return strings.TrimSuffix(b.String(), "\n")
}
