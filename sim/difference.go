package sim

import (
	"fmt"
	"slices"
	"time"
)

// Difference is a thing that was counted of a schedule, and that came to something
// else in the second run.
type Difference struct {
	What          string
	First, Second int64
	By            time.Duration // how late or early in the second run at most
}

// Differences lists what came to something else, in an order that is always the
// same.
func (s *ScheduleComparison) Differences() []Difference {
	var list []Difference
	a, b := &s.First, &s.Second
	add := func(what string, was, is int64, wasBy, isBy time.Duration) {
		if was != is || isBy != wasBy {
			list = append(list, Difference{What: what, First: was, Second: is, By: isBy})
		}
	}
	add("fired on time", a.OnTime, b.OnTime, 0, 0)
	add("fired late", a.Late, b.Late, a.MaxLate, b.MaxLate)
	add("fired early", a.Early, b.Early, a.MaxEarly, b.MaxEarly)
	add("fired again", a.Again, b.Again, 0, 0)
	add("skipped", a.Skipped, b.Skipped, 0, 0)
	add("set aside", a.Held, b.Held, 0, 0)
	add("attempts failed", a.Retried, b.Retried, 0, 0)
	add("jobs run again", a.Rerun, b.Rerun, 0, 0)
	add("jobs died", a.Died, b.Died, 0, 0)
	add("results not delivered", a.Undelivered, b.Undelivered, 0, 0)
	return list
}

// Total is what became of all schedules together. It has no name.
func (c *Comparison) Total() ScheduleComparison {
	var total ScheduleComparison
	for i := range c.Schedules {
		s := &c.Schedules[i]
		total.First.add(&s.First)
		total.Second.add(&s.Second)
		total.Changed += s.Changed
	}
	return total
}

func (t *Tally) add(o *Tally) {
	t.OnTime += o.OnTime
	t.Late += o.Late
	t.Early += o.Early
	t.Skipped += o.Skipped
	t.Again += o.Again
	t.MaxLate, t.MaxEarly = max(t.MaxLate, o.MaxLate), max(t.MaxEarly, o.MaxEarly)
	t.Held += o.Held
	t.Retried += o.Retried
	t.Rerun += o.Rerun
	t.Died += o.Died
	t.Undelivered += o.Undelivered
}

// Line is an effect, and all whom the same happened to at the same time.
type Line struct {
	Effect
	Who []string // schedules or processes; none: the store
}

// Story tells what the fault of the second run led to, in the order of true time;
// fault 0 is what is traced to no single fault.
func (c *Comparison) Story(fault int) []Line {
	var lines []Line
	at := map[string]int{}
	for i := range c.Effects {
		e := &c.Effects[i]
		if e.Fault != fault {
			continue
		}
		key := fmt.Sprintln(e.From.UnixMilli(), e.Rule, e.Text())
		n, ok := at[key]
		if !ok {
			n = len(lines)
			at[key] = n
			lines = append(lines, Line{Effect: *e})
		}
		if who := e.who(); who != "" && !slices.Contains(lines[n].Who, who) {
			lines[n].Who = append(lines[n].Who, who)
		}
	}
	return lines
}

func (e *Effect) who() string {
	switch {
	case e.Schedule != "":
		return e.Schedule
	case e.Process != 0:
		return fmt.Sprintf("process %d", e.Process)
	default:
		return ""
	}
}

// Why are the rules that decided the effects, each with what it says, once.
func (c *Comparison) Why() []Note {
	var notes []Note
	for i := range c.Effects {
		if e := &c.Effects[i]; e.Rule != "" && !slices.Contains(notes, e.Note) {
			notes = append(notes, e.Note)
		}
	}
	return notes
}
