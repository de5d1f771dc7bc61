package htmlreport

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tickonce/tickonce"
	"github.com/tickonce/tickonce/sim"
)

var verdictWords = map[sim.Verdict]string{
	sim.Pass: "Passed", sim.Safety: "Failed", sim.Liveness: "Stuck", sim.Budget: "Broken off",
	sim.HandlerCrash: "A handler crashed", sim.Unmet: "Not as expected",
}

// judge puts what the run came to into a sentence, and what of it matters most
// into the next.
func judge(d *run, result *sim.Result) verdict {
	v := verdict{Word: verdictWords[result.Verdict], Passed: result.Verdict == sim.Pass}
	if v.Word == "" {
		v.Word = result.Verdict.String()
	}
	v.Says = says(result)
	if d.Recording && v.Passed {
		v.Says = "No record breaks a rule that rows can tell of."
	}
	v.Lede = []part{{Text: lede(d)}}
	if look := worst(d); look.Text != "" {
		v.Lede = append(v.Lede, look)
	}
	return v
}

// ofWhatIf has the first sentence tell of the difference.
func (v *verdict) ofWhatIf(c *sim.Comparison, d *run) {
	v.Says = c.Headline()
	other := "the scenario as it is"
	if d.Against.Calm {
		other = "the calm run"
	}
	text := fmt.Sprintf("%s, compared with %s.", span(time.Duration(d.Simulated)*time.Millisecond), other)
	if v.Passed && c.First.Verdict == sim.Pass {
		v.Word = ""
		text += " No rule was broken in either."
	}
	v.Lede[0].Text = text
}

func says(result *sim.Result) string {
	var due, again, repaired, forgotten, left int64
	for _, s := range result.Schedules {
		due += s.Boundaries + s.Left + s.Forgotten
		again += s.FiredAgain
		repaired += s.FiredByRepair
		forgotten += s.Forgotten
		left += s.Left
	}
	switch {
	case len(result.Failures) > 0:
		f := result.Failures[0]
		for _, c := range result.Checks {
			if c.Invariant == f.Invariant {
				return "This did not hold: " + c.About + "."
			}
		}
		return f.Detail + "."
	case result.Verdict == sim.Budget:
		return "The run takes more events than a run may."
	case result.Verdict == sim.Unmet:
		return "The rules held; what the scenario expects did not come."
	case due == 0:
		return "No boundary came due, so this shows nothing."
	case again > 0:
		return fmt.Sprintf("No rule was broken; %s again, forgotten by a restart.", count(again, "boundary fired", "boundaries fired"))
	case repaired > 0:
		return fmt.Sprintf("No rule was broken; %s again once the clock was right.", count(repaired, "boundary fired", "boundaries fired"))
	case forgotten > 0:
		return fmt.Sprintf("No rule was broken; %s with a lost store, and never fired.", count(forgotten, "boundary went", "boundaries went"))
	case left > 0:
		return fmt.Sprintf("Nothing fired twice; %s still due at the end.", count(left, "boundary was", "boundaries were"))
	default:
		return "Nothing fired twice, nothing was lost."
	}
}

func lede(d *run) string {
	var due, late, early, again, skipped int64
	for _, s := range d.Schedules {
		due, late, early, again, skipped = due+s.Due, late+s.Late, early+s.Early, again+s.FiredAgain, skipped+s.Skipped
	}
	text := fmt.Sprintf("%s came due in %s.", count(due, "boundary", "boundaries"), span(time.Duration(d.Simulated)*time.Millisecond))
	calm := late+early+again+skipped == 0
	struck := count(int64(len(d.Faults)), "fault", "faults")
	switch {
	case d.Recording && calm:
		return text + " All fired on time."
	case len(d.Faults) == 0 && calm:
		return text + " Nothing was made to go wrong, and all fired on time."
	case calm:
		return text + fmt.Sprintf(" %s made none of them late.", struck)
	case d.Recording:
		text += " Of them "
	case len(d.Faults) > 0:
		text += " With " + struck + ", "
	default:
		text += " Without any fault, "
	}
	text += noneOr(late) + " fired late"
	if early > 0 {
		text += fmt.Sprintf(", %s early", number(early))
	}
	if again > 0 {
		text += fmt.Sprintf(", %s again", number(again))
	}
	if skipped == 0 {
		return text + ", and none was skipped."
	}
	return text + fmt.Sprintf(", and %s skipped, each for a stated reason.", wereOr(skipped))
}

// worst is what is worth a look: a schedule that never fired although it was
// due, else the one of which most deliveries were given up, else the longest of its
// intervals skipped in a row, else the longest wait, else the most dead jobs.
func worst(d *run) part {
	for i, f := range d.Failures {
		if i == 0 {
			return part{"See where it was found.", f.Key}
		}
	}
	var lost, skipped, late, dead part
	var unheard, longest, waited, died int64
	for i, s := range d.Schedules {
		if s.Due > 0 && s.Due == s.Skipped {
			return part{fmt.Sprintf("Worth a look: %s never fired.", s.Name), fmt.Sprintf("%s/skip/0", scheduleID(i))}
		}
		if s.Undelivered > unheard {
			unheard = s.Undelivered
			k := slices.IndexFunc(s.Tries, func(a attempt) bool { return a.kind == "undelivered" })
			lost = part{
				fmt.Sprintf("Worth a look: %s ran well, and was not delivered%s.", s.Name, times(unheard)), fmt.Sprintf("%s/try/%d", scheduleID(i), k),
			}
		}
		if s.Dead > died {
			died = s.Dead
			k := slices.IndexFunc(s.Tries, func(a attempt) bool { return a.kind == "dead" })
			dead = part{fmt.Sprintf("Worth a look: of %s %s.", s.Name, count(died, "job died", "jobs died")), fmt.Sprintf("%s/try/%d", scheduleID(i), k)}
		}
		for k, q := range s.Skips {
			if q.reason == "hours" { // which is as planned
				continue
			}
			if gap := q.step * q.count; gap > longest {
				longest = gap
				skipped = part{
					fmt.Sprintf("Worth a look: %s skipped %s.", s.Name, count(q.count, "boundary", "in a row")),
					fmt.Sprintf("%s/skip/%d", scheduleID(i), k),
				}
			}
		}
		for k, f := range s.Fires {
			if wait := f.wait(); wait > waited {
				waited = wait
				did := span(time.Duration(wait)*time.Millisecond) + " late"
				if f.kind == "again" {
					did = count(f.count, "boundary again", "boundaries again")
				}
				late = part{fmt.Sprintf("Worth a look: %s fired %s.", s.Name, did), fmt.Sprintf("%s/fire/%d", scheduleID(i), k)}
			}
		}
	}
	return cmp.Or(lost, skipped, late, dead)
}

func noneOr(n int64) string {
	if n == 0 {
		return "none"
	}
	return number(n)
}

// times says how often, if it was more than once.
func times(n int64) string {
	if n == 1 {
		return ""
	}
	return " " + number(n) + " times"
}

// interval is that of a spec.
func interval(spec string) (time.Duration, bool) {
	s, err := tickonce.ParseSpec(spec)
	if err != nil {
		return 0, false
	}
	return s.Interval(), true
}
