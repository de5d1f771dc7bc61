package sim

import (
	"fmt"
	"strings"
)

// Tape is a run as a recording: its random choices, in the order in which they
// were made, and what happened. [ParseTape] reads one from text, String writes it.
//
// A tape stands between a scenario and the streams of choices that its seed has:
// where these draw otherwise than they did, the recorded run can still be played.
// The order of ties is not on it: [TiesSeeded] has it from the seed.
type Tape struct {
	Scenario Digest   // of the scenario's text, without a recorded outcome
	Choices  []Choice // of the run
	Events   []string // that [Watch] tells of, as texts
}

// Choice is one random choice of a run.
type Choice struct {
	Step  int64  // in which it was made, of [Result.Events]; 0: before the first
	Site  string // where
	N     int64  // of how many
	Value int64  // from 0 to N-1
}

// MaxTape is how long the text of a tape may be, in bytes.
const MaxTape = 64 << 20

// Divergence is the error of [Play] where the run asks for another choice than
// the tape has.
type Divergence struct {
	Place    int    // of the choice on the tape, from 1
	Step     int64  // of the run
	Recorded Choice // what the tape has; without a Site: its end
	Asked    Choice // what the run asks for; without a Site: the run ended
}

func (d *Divergence) Error() string {
	recorded, asked := "the end of the tape", "the end of the run"
	if d.Recorded.Site != "" {
		recorded = fmt.Sprintf("recorded in step %d at site %s, of %d", d.Recorded.Step, shown(d.Recorded.Site), d.Recorded.N)
	}
	if d.Asked.Site != "" {
		asked = fmt.Sprintf("asked for at site %s, of %d", shown(d.Asked.Site), d.Asked.N)
	}
	return fmt.Sprintf("the run leaves the tape in step %d, at choice %d: %s; %s", d.Step, d.Place, recorded, asked)
}

// Record runs the scenario as [Run] does, and records it. The tape is nil if its
// text would be longer than [MaxTape].
func Record(s Scenario) (*Result, *Tape, error) {
	return taped(s, &deck{}, rig{budget: maxEvents})
}

// Play runs the scenario with the choices of a tape instead of drawn ones, and
// records that run. Where the run asks for another choice than the tape has, it
// is broken off: the error is a [*Divergence], beside the result and the tape up to
// there. A tape of another scenario is refused, as is what [Run] refuses.
func Play(s Scenario, t *Tape) (*Result, *Tape, error) {
	return taped(s, &deck{plays: t}, rig{budget: maxEvents})
}

func taped(s Scenario, d *deck, r rig) (*Result, *Tape, error) {
	if err := s.Validate(); err != nil {
		return nil, nil, err
	}
	if s.Swarm != (Swarm{}) {
		s = s.draw(s.Engine.Seed)
	}
	s.Outcome = ""
	d.tape.Scenario.Text(0, s.String())
	if d.plays != nil && d.plays.Scenario != d.tape.Scenario {
		return nil, nil, fmt.Errorf("found the tape of another scenario, %s, want one of this, %s: record it anew", d.plays.Scenario, d.tape.Scenario)
	}
	r.deck = d
	r.tell = func(e *Event) { d.event(e.String()) }
	result := run(&s, r)
	d.end()
	tape := &d.tape
	if d.length > MaxTape {
		tape = nil
	}
	if d.parted != nil {
		return result, tape, d.parted
	}
	return result, tape, nil
}

// deck records a tape, and may play one meanwhile.
type deck struct {
	tape   Tape
	length int   // of its text, about
	plays  *Tape // or nil
	parted *Divergence
	world  *world
}

// choose notes the choice that was drawn; while a tape plays, the one that it has
// instead.
func (d *deck) choose(site string, n, drawn int64) int64 {
	c := Choice{Step: d.world.events, Site: site, N: n, Value: drawn}
	if d.plays != nil && d.parted == nil {
		i := len(d.tape.Choices)
		if i < len(d.plays.Choices) && d.plays.Choices[i].Site == site && d.plays.Choices[i].N == n {
			c.Value = d.plays.Choices[i].Value
		} else {
			d.part(c)
			d.world.broken = true
		}
	}
	if d.length += len(site) + 32; d.length <= MaxTape || d.plays != nil {
		d.tape.Choices = append(d.tape.Choices, c)
	}
	return c.Value
}

// part notes where the run leaves the tape: with the choice that it asks for.
func (d *deck) part(asked Choice) {
	i := len(d.tape.Choices)
	d.parted = &Divergence{Place: i + 1, Step: d.world.events, Asked: asked}
	if i < len(d.plays.Choices) {
		d.parted.Recorded = d.plays.Choices[i]
	}
}

func (d *deck) event(text string) {
	if d.length += len(text) + len("event \n"); d.length <= MaxTape {
		d.tape.Events = append(d.tape.Events, strings.Clone(text))
	}
}

// end is the end of the run, by which every choice has to be played.
func (d *deck) end() {
	if d.plays != nil && d.parted == nil && len(d.tape.Choices) < len(d.plays.Choices) {
		d.part(Choice{})
	}
}
