package browser

import (
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// BenchmarkReady tells how long a page waits for the first answer of an engine, from
// the call of load on: the first time, and after reloads, with what the browser has
// kept of the module.
func BenchmarkReady(b *testing.B) {
	const ready = `(async () => {
		const { load } = await window.tickonce;
		const begin = performance.now(), runtime = await load(), loaded = performance.now();
		await runtime.open().schedule('report', '@every 5m', 'mail');
		return [performance.now() - begin, loaded - begin];
	})()`
	for _, entry := range []string{"/", "/worker"} {
		b.Run("entry="+entry, func(b *testing.B) {
			p := visit(b, site(b)+entry)
			first := ask[[]float64](p, ready)
			var all, load []float64
			for b.Loop() {
				p.do(chromedp.Reload())
				took := ask[[]float64](p, ready)
				all, load = append(all, took[0]), append(load, took[1])
			}
			slices.Sort(all)
			slices.Sort(load)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(first[0], "ms-first")
			b.ReportMetric(all[len(all)/2], "ms-warm-median")
			b.ReportMetric(load[len(load)/2], "ms-load-median")
			b.ReportMetric(all[0], "ms-warm-best")
		})
	}
}
