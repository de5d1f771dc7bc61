package browser

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// serve builds an example and runs it, and answers where it serves its page.
func serve(t *testing.T, example string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), example)
	build := exec.Command("go", "build", "-o", program, "./examples/"+example)
	build.Dir = ".."
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))

	server := exec.Command(program, "-addr", "127.0.0.1:0")
	server.Dir, server.Stderr = "..", os.Stderr
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		server.Process.Kill()
		io.Copy(io.Discard, out)
		server.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(address)
}

// goPage serves examples/gopage, and opens it in a tab.
func goPage(t *testing.T, before ...step) *tab {
	t.Helper()
	return openPage(t, serve(t, "gopage"), before...)
}

// openPage opens a page in a tab. When the test ends, nothing may have been said on
// the console.
func openPage(t *testing.T, address string, before ...step) *tab {
	t.Helper()
	p := newTab(t, func(p *tab, event any) {
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			p.complain("console: %s", e.Type)
		case *runtime.EventExceptionThrown:
			p.complain("exception: %+v", *e.ExceptionDetails)
		case *log.EventEntryAdded:
			p.complain("log: %s", e.Entry.Text)
		case *page.EventJavascriptDialogOpening:
			p.complain("dialog: %s", e.Message)
		}
	})
	p.do(before...)
	p.do(chromedp.Navigate(address))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Empty(t, p.faults)
	})
	return p
}

// until waits within the page for an expression to be true. A page that is left
// meanwhile takes its answer along, and the one that comes after it is asked.
func (p *tab) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	wait := chromedp.Evaluate[any](`(async () => { while (!(`+expression+`)) await new Promise(resolve => setTimeout(resolve, 20)); })()`, chromedp.EvalAwaitPromise)
	for {
		_, err := chromedp.Run(ctx, wait)
		if left := (*cdproto.Error)(nil); errors.As(err, &left) && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		require.NoError(p.t, err)
		return
	}
}

const (
	logged = `document.getElementById('log').innerText`
	listed = `document.getElementById('schedules').innerText`
)

// The page of examples/gopage shows what its Go program fires and does, takes
// schedules, and says why it refuses one.
func TestGoProgramInAPageIsTalkedTo(t *testing.T) {
	p := goPage(t, size(1440, 900), theme("light"))
	p.until(logged + `.includes('primes below')`)
	require.Regexp(t, `(?s)^digest\s+@every 20s\s+in \d+ s.*primes\s+@every 5s\s+in \d+ s`, p.text(listed))

	const hostile = `<img src=x onerror=alert(1)> \u202e`
	fill := func(field, value string) {
		ask[any](p, `document.querySelector('[name=`+field+`]').value = '`+value+`'; 0`)
	}
	fill("name", hostile)
	fill("spec", "@often")
	p.do(chromedp.Click(chromedp.CSS("#add button")))
	p.until(`document.getElementById('refused').textContent !== ''`)
	require.Contains(t, p.text(`document.getElementById('refused').textContent`), "@often")
	fill("spec", "@every 1h")
	p.do(chromedp.Click(chromedp.CSS("#add button")))
	p.until(listed + `.includes('<img src=x')`)
	require.Empty(t, p.text(`document.getElementById('refused').textContent`))
	p.do(chromedp.Click(chromedp.CSS("#schedules li:first-child .now")))
	p.until(logged + `.includes('1)> \u202e done')`)
	p.do(chromedp.Click(chromedp.CSS("#schedules li:last-child .pause")))
	p.until(listed + `.includes('paused')`)
	require.Empty(t, p.axe(everything))
	p.picture("gopage-1440-light", true)
	p.do(theme("dark"))
	p.picture("gopage-1440-dark", true)

	p.do(size(390, 844), theme("dark"))
	require.Empty(t, p.axe(contrast))
	require.True(t, ask[bool](p, `document.documentElement.scrollWidth <= innerWidth`))
	p.picture("gopage-390-dark", true)
	p.do(chromedp.Click(chromedp.CSS("#schedules li:first-child .remove")))
	p.until(`!` + listed + `.includes('<img src=x')`)
}

// A machine sleeps for an hour, and the page is seen again: the newest boundary
// is caught up at once, and the others are told as skipped.
func TestGoProgramInAPageCatchesUpAfterSleep(t *testing.T) {
	p := goPage(t, size(390, 844), theme("light"))
	p.until(logged + `.includes('primes below')`)
	ask[any](p, `{
		const before = Date;
		globalThis.Date = class extends before {
			constructor(...of) { super(...(of.length ? of : [before.now() + 3600e3])); }
			static now() { return before.now() + 3600e3; }
		};
		document.dispatchEvent(new Event('visibilitychange'));
	} 0`)
	p.until(`/primes skipped 7\d\d missed/.test(` + logged + `)`)
	p.until(logged + `.split('skipped')[0].includes('primes fired')`)
	p.picture("gopage-390-light", true)
}
