package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// built is the npm package as it is published.
const built = "../wasm/js/dist"

// site serves the npm package in /tickonce/ beside an empty page, at an origin of
// its own, which it answers. Its policy lets the page compile WebAssembly, that of
// /strict does not; /bytes.wasm is the module as bytes of no type, /page.wasm none.
func site(t testing.TB) string {
	_, err := os.Stat(built + "/index.js")
	require.NoError(t, err, "make js builds it")
	const begins = `<!doctype html><meta charset="utf-8"><title>test</title><link rel="icon" href="data:,"><script type="module">window.tickonce = import('/tickonce/`
	const page, worker = begins + `index.js')</script>`, begins + `worker.js')</script>`
	module, err := os.ReadFile(built + "/tickonce.wasm")
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/tickonce/", http.StripPrefix("/tickonce/", http.FileServer(http.Dir(built))))
	as := func(contentType, policy string, content []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Content-Security-Policy", policy)
			_, _ = w.Write(content)
		}
	}
	const policy = "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'"
	mux.Handle("/{$}", as("text/html", policy, []byte(page)))
	mux.Handle("/worker", as("text/html", policy, []byte(worker)))
	mux.Handle("/strict", as("text/html", "script-src 'self' 'unsafe-inline'", []byte(page)))
	mux.Handle("/page.wasm", as("text/html", "", []byte(page)))
	mux.Handle("/bytes.wasm", as("application/octet-stream", "", module))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
}

// visit opens a page of a site in a tab of its own, in which no exception may be
// left uncaught.
func visit(t testing.TB, url string) *tab {
	p := newTab(t, func(p *tab, event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			p.complain("exception: %+v", *e.ExceptionDetails)
		case *inspector.EventTargetCrashed:
			p.mu.Lock()
			crashed := p.crashed
			p.mu.Unlock()
			if crashed == nil {
				p.complain("the tab has crashed")
			} else {
				crashed()
			}
		}
	})
	p.do(call(inspector.Enable, cdp.Empty{}))
	p.do(chromedp.Navigate(url))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Empty(t, p.faults)
	})
	return p
}

// with evaluates the body of an asynchronous function in a page, in which the
// package is p, code answers the code that a promise is rejected with, and text
// and bytes turn the one into the other.
func with[T any](p *tab, body string) T {
	p.t.Helper()
	return ask[T](p, `(async () => {
		const p = await window.tickonce;
		const code = promise => promise.then(() => 'none', e => e instanceof p.TickonceError ? e.code : String(e));
		const text = b => b && new TextDecoder().decode(b), bytes = s => new TextEncoder().encode(s);
		const loaded = async store => { const { snapshot, log } = await store.load(); return text(snapshot) + '|' + text(log); };
		`+body+`
	})()`)
}

// crash ends the process of a tab, which answers nothing any more.
func (p *tab) crash() {
	p.t.Helper()
	ctx, crashed := context.WithCancel(p.ctx)
	p.mu.Lock()
	p.crashed = crashed
	p.mu.Unlock()
	_, err := chromedp.Run(ctx, call(page.Crash, cdp.Empty{}))
	require.ErrorIs(p.t, err, context.Canceled)
}

func quota(origin string, bytes *float64) step {
	return call(storage.OverrideQuotaForOrigin, storage.OverrideQuotaForOriginParams{Origin: origin, QuotaSize: bytes})
}

// shut closes a tab.
func (p *tab) shut() {
	p.t.Helper()
	require.NoError(p.t, chromedp.Cancel(p.ctx))
}
