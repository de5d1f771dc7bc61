package browser

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickonce/tickonce/sim"
	"github.com/tickonce/tickonce/sim/htmlreport"
)

// BenchmarkReport opens a report and zooms and pans through it. It tells the page's
// size, the time until it is complete, and the time of a drawing, of which the page
// tells in a performance measure.
func BenchmarkReport(b *testing.B) {
	outages, text := example(b, "all-outages.sim")
	for _, c := range []struct {
		name     string
		scenario sim.Scenario
		source   htmlreport.Source
	}{
		{"all-outages", outages, htmlreport.Source{File: "all-outages.sim", Text: text}},
		{"100 schedules in 30 days", crowd(b), htmlreport.Source{File: "crowd.sim"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			file := b.TempDir() + "/report.html"
			write(b, file, c.scenario, c.source)
			info, err := os.Stat(file)
			require.NoError(b, err)
			var complete, drawn []float64
			for b.Loop() {
				p := open(b, file, 1440, 900, theme("light"))
				complete = append(complete, ask[float64](p, `performance.getEntriesByType('navigation')[0].domComplete`))
				drawn = append(drawn, ask[[]float64](p, walk)...)
			}
			slices.Sort(drawn)
			slices.Sort(complete)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(info.Size())/1000, "kB")
			b.ReportMetric(complete[len(complete)/2], "ms-complete")
			b.ReportMetric(drawn[len(drawn)/2], "ms-draw-median")
			b.ReportMetric(drawn[len(drawn)*95/100], "ms-draw-p95")
		})
	}
}

// walk zooms in, goes through the run, and zooms out again.
const walk = `(async () => {
	const plot = document.getElementById('plot'), times = [];
	const seen = new PerformanceObserver(list => times.push(...list.getEntriesByName('draw').map(e => e.duration)));
	seen.observe({ type: 'measure' });
	const keys = [...Array(8).fill(['+']), ...Array(24).fill(['ArrowRight', true]), ...Array(8).fill(['-']), ['0']];
	for (const [key, shiftKey = false] of keys) {
		plot.dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey, bubbles: true }));
		await new Promise(requestAnimationFrame);
	}
	await new Promise(done => setTimeout(done, 100));
	seen.disconnect();
	return times;
})()`

// crowd are many schedules, and faults of all kinds.
func crowd(b *testing.B) sim.Scenario {
	s := sim.Scenario{Engine: sim.Engine{Runners: 2, StandBy: true}, For: 30 * 24 * time.Hour, Swarm: sim.Swarm{Min: 40, Max: 40}}
	for i := range 100 {
		s.Schedules = append(s.Schedules, sim.Schedule{Name: fmt.Sprintf("schedule-%02d", i), Spec: fmt.Sprintf("@every %dm", 5+i%5), Queue: "work"})
	}
	drawn, err := s.Draw(1)
	require.NoError(b, err)
	return drawn
}
