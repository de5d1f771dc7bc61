package htmlreport

// prune drops the entries of the log to which nothing on the page leads.
func (d *run) prune() {
	used := make([]bool, len(d.Log))
	d.eachCause(func(at *int) {
		for i := *at; i >= 0 && !used[i]; i = d.Log[i].Cause {
			used[i] = true
		}
	})
	moved := make([]int, len(d.Log))
	kept := d.Log[:0]
	for i, e := range d.Log {
		if !used[i] {
			continue
		}
		if e.Cause >= 0 {
			e.Cause = moved[e.Cause] // which comes before it
		}
		moved[i] = len(kept)
		kept = append(kept, e)
	}
	d.Log = notNil(kept)
	d.eachCause(func(at *int) {
		if *at >= 0 {
			*at = moved[*at]
		}
	})
}

// eachCause calls use for every place on the page that leads into the log.
func (d *run) eachCause(use func(*int)) {
	for i := range d.Schedules {
		s := &d.Schedules[i]
		for k := range s.Fires {
			use(&s.Fires[k].cause)
		}
		for k := range s.Skips {
			use(&s.Skips[k].cause)
		}
		for k := range s.Holds {
			use(&s.Holds[k].cause)
		}
		for k := range s.Turns {
			use(&s.Turns[k].Cause)
		}
	}
	for _, p := range d.Processes {
		for k := range p.Leases {
			use(&p.Leases[k].Cause)
		}
		for k := range p.Away {
			use(&p.Away[k].Cause)
		}
		for k := range p.Marks {
			use(&p.Marks[k].Cause)
		}
	}
	for i := range d.Failures {
		use(&d.Failures[i].Cause)
	}
	for i := range d.Faults {
		for k := range d.Faults[i].Causes {
			use(&d.Faults[i].Causes[k])
		}
	}
}
