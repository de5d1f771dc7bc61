package sim

import (
	"fmt"
	"strings"
)

// String is the policies as the words of a schedule's line.
func (p Policies) String() string {
	return strings.Join(keyWords(nil, &p, policyKeys), " ")
}

// Notes say in plain words what the policies do, each with its rule.
func (p Policies) Notes() []Note {
	var list []Note
	switch p.Overlap {
	case OverlapSkip:
		list = append(list, Note{"X9", "while a job of it is pending or claimed, what comes due is skipped"})
	case OverlapBufferOne:
		list = append(list, Note{"X9", "one job of it runs at a time, and while another one waits, what comes due is skipped"})
	}
	if p.Hours != (Hours{}) {
		times, zone, zoned := strings.Cut(hoursValue{&p.Hours}.text(), "@")
		if !zoned {
			zone = "UTC"
		}
		list = append(list, Note{"X10", fmt.Sprintf("outside of %s, %s, what comes due is skipped", times, zone)})
	}
	if p.RunOnce {
		list = append(list, Note{"X8", "it fires once, and its job is tried once"})
	}
	switch {
	case p.Breaker == 1:
		list = append(list, Note{"X4", "a job that died pauses it, until it is resumed"})
	case p.Breaker > 0:
		list = append(list, Note{"X4", fmt.Sprintf("%d jobs in a row that died pause it, until it is resumed", p.Breaker)})
	}
	if p.Timeout > 0 {
		list = append(list, Note{"X5", "a run that takes longer than " + formatDuration(p.Timeout) + " has failed"})
	}
	return list
}
