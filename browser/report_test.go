package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

var pictures = flag.String("pictures", "", "write pictures of the reports into this folder")

var browser context.Context

// TestMain starts the one browser whose tabs the tests use.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(start(m))
}

func start(m *testing.M) int {
	opened, stop, err := Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	browser = opened
	defer func() { os.RemoveAll(folder) }()
	return m.Run()
}

// tab is a page, and what it complained of and asked for.
type tab struct {
	t      testing.TB
	ctx    context.Context
	mu     sync.Mutex
	faults []string

	crashed func() // once it has crashed, if it is to
}

// step is an action that answers nothing.
type step = chromedp.Action[chromedp.Void]

// call is a command of the browser's protocol as a step.
func call[P, R any](command cdp.Command[P, R], params P) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func size(width, height int64) step {
	return call(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 700})
}

// open opens a file in a tab of its own. When the test ends, nothing may have
// been said on the console, and nothing but the file may have been asked for.
func open(t testing.TB, file string, width, height int64, before ...step) *tab {
	path, _, _ := strings.Cut(file, "#")
	p := newTab(t, func(p *tab, event any) {
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			p.complain("console: %s", e.Type)
		case *runtime.EventExceptionThrown:
			p.complain("exception: %+v", *e.ExceptionDetails)
		case *log.EventEntryAdded:
			p.complain("log: %s", e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if asked, _, _ := strings.Cut(e.Request.URL, "#"); asked != "file://"+path && !strings.HasPrefix(asked, "data:font/") {
				p.complain("request: %s", e.Request.URL)
			}
		case *page.EventJavascriptDialogOpening:
			p.complain("dialog: %s", e.Message)
		}
	})
	p.do(call(network.Enable, network.EnableParams{}), size(width, height))
	p.do(before...)
	p.do(chromedp.Navigate("file://" + file))
	p.text(`document.fonts.ready.then(() => document.querySelector('#verdict em').textContent)`)
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Empty(t, p.faults)
	})
	return p
}

func newTab(t testing.TB, heard func(*tab, any)) *tab {
	p := &tab{t: t}
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithListener(func(event any) { heard(p, event) }))
	t.Cleanup(closeTab)
	p.ctx = ctx
	require.NoError(t, chromedp.Do(ctx, call(log.Enable, cdp.Empty{})))
	return p
}

func (p *tab) complain(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

func (p *tab) do(steps ...step) {
	p.t.Helper()
	run(p, chromedp.Steps(steps...))
}

func run[T any](p *tab, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	answer, err := chromedp.Run(ctx, action)
	require.NoError(p.t, err)
	return answer
}

// ask evaluates JavaScript in the page.
func ask[T any](p *tab, script string) T {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

func (p *tab) text(script string) string {
	p.t.Helper()
	return ask[string](p, script)
}

// picture writes a picture, if pictures are wanted.
func (p *tab) picture(name string, whole bool) {
	p.t.Helper()
	if *pictures == "" {
		return
	}
	take := chromedp.CaptureScreenshot()
	if whole {
		take = chromedp.FullScreenshot(100)
	}
	require.NoError(p.t, os.MkdirAll(*pictures, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(*pictures, name+".png"), run(p, take), 0o644))
}

// What the accessibility checker looks for; contrast takes it most of its time.
const (
	everything     = `{}`
	allButContrast = `{ rules: { 'color-contrast': { enabled: false } } }`
	contrast       = `{ runOnly: ['color-contrast', 'link-in-text-block'] }`
)

// axe are the findings of the accessibility checker, in the page as it is.
func (p *tab) axe(looks string) (findings []string) {
	p.t.Helper()
	checker, err := os.ReadFile("../sim/htmlreport/web/node_modules/axe-core/axe.min.js")
	require.NoError(p.t, err, "make test, or npm ci there, installs it")
	ask[any](p, string(checker)+"; 0")
	type finding struct {
		ID    string `json:"id"`
		Nodes []struct {
			HTML string `json:"html"`
			Says string `json:"failureSummary"`
		} `json:"nodes"`
	}
	found := ask[[]finding](p, `axe.run(document, { resultTypes: ['violations'], ...`+looks+` }).then(r => r.violations.map(v => ({ id: v.id, nodes: v.nodes.map(n => ({ html: n.html, failureSummary: n.failureSummary })) })))`)
	for _, f := range found {
		for _, n := range f.Nodes {
			findings = append(findings, fmt.Sprintf("%s: %s: %s", f.ID, n.HTML, n.Says))
		}
	}
	return findings
}

func theme(name string) step {
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

func TestNothingIsComplainedOfInLightOrDark(t *testing.T) {
	for name, file := range reports(t) {
		for _, colours := range []string{"light", "dark"} {
			looks := everything
			switch hasAllColours := name == "outages" || name == "violation"; {
			case colours == "dark" && !hasAllColours && *pictures == "":
				continue
			case colours == "dark":
				looks = contrast
			case !hasAllColours:
				looks = allButContrast
			}
			t.Run(name+" "+colours, func(t *testing.T) {
				p := open(t, file, 1440, 900, theme(colours))
				require.Empty(t, p.axe(looks))
				p.picture(name+"-"+colours, false)
				p.picture(name+"-full-"+colours, true)
			})
		}
	}
}

// From a small phone to a large screen nothing is wider than the page.
func TestNoWidthScrollsSideways(t *testing.T) {
	for _, name := range []string{"outages", "violation", "hostile"} {
		t.Run(name, func(t *testing.T) {
			p := open(t, reports(t)[name], 320, 700, theme("light"))
			for _, width := range []int64{320, 360, 390, 600, 700, 701, 900, 901, 1180, 1181, 1440, 1920} {
				p.do(size(width, 800))
				wide := ask[[]string](p, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
					const most = document.documentElement.clientWidth;
					done(document.documentElement.scrollWidth <= most ? [] : [...document.querySelectorAll('body *:not(thead *, .unseen, .unseen *)')]
						.filter(e => e.getBoundingClientRect().right > most + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 120)));
				})))`)
				require.Empty(t, wide, "at %d pixels", width)
				if width == 320 || width == 1920 {
					p.picture(fmt.Sprintf("%s-%d", name, width), true)
				}
			}
		})
	}
}

// With the keys alone one gets to the timeline, through faults, lanes and marks,
// zooms, folds, searches, and is told each time what one is at.
func TestTheKeyboardIsEnough(t *testing.T) {
	p := open(t, reports(t)["outages"], 1440, 900, theme("light"))
	said := func() string { return p.text(`document.getElementById('said').textContent`) }
	inView := func() string { return p.text(`document.getElementById('range').textContent`) }
	press := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			p.do(chromedp.KeyEvent(key))
		}
	}
	press(kb.Tab)
	require.Equal(t, "Skip to the timeline", p.text(`document.activeElement.textContent`))
	p.do(chromedp.Focus(chromedp.CSS("#plot")))
	whole := inView()
	press("f")
	require.Contains(t, said(), "crashed")
	require.NotEqual(t, whole, inView(), "it zooms to the fault")
	press("f")
	require.Contains(t, said(), "down for 4\u00a0min")
	p.do(chromedp.KeyEvent("F", chromedp.KeyModifiers(chromedp.ModifierShift)))
	require.Contains(t, said(), "crashed")
	press("0")
	require.Equal(t, whole, inView())
	press("+")
	require.NotEqual(t, whole, inView())
	press("0", kb.ArrowDown)
	require.Contains(t, said(), "Process")
	press(kb.ArrowDown)
	require.Contains(t, said(), "update_mirrors")
	before := said()
	press(kb.ArrowRight, kb.ArrowRight)
	require.NotEqual(t, before, said())
	require.Contains(t, p.text(`document.getElementById('panel').textContent`), "update_mirrors")
	p.picture("selected", false)
	press("z")
	require.Equal(t, "true", p.text(`document.getElementById('fold').getAttribute('aria-pressed')`))
	p.picture("folded", false)
	press("z", kb.Escape)
	require.Empty(t, said())
	press("/")
	require.Equal(t, "search", p.text(`document.activeElement.id`))
	ask[any](p, `document.getElementById('search').value = ''; 0`) // the driver types the key all the same
	p.do(chromedp.SendKeys(chromedp.CSS("#search"), "gc_lfs skipped"))
	require.Equal(t, "true", p.text(`document.getElementById('search').getAttribute('aria-expanded')`))
	press(kb.Enter)
	require.Contains(t, said(), "gc_lfs: 2 skipped")
	require.Contains(t, p.text(`document.getElementById('panel').textContent`), "T14")
	require.Empty(t, p.axe(allButContrast), "with something selected")
	p.picture("why", false)
}

// The chain of causes of a late fire leads to the fault.
func TestTheCausesOfALateFireLeadToTheFault(t *testing.T) {
	p := open(t, reports(t)["outages"], 1440, 900, theme("dark"))
	p.do(chromedp.Click(chromedp.CSS(".look")))
	chain := ask[[]string](p, `[...document.querySelectorAll('.chain li')].map(e => e.textContent)`)
	require.GreaterOrEqual(t, len(chain), 4)
	require.Contains(t, chain[0], "down for")
	p.picture("causes-dark", false)
}

type rectangle struct {
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	Width float64 `json:"width"`
}

// plot is where the lanes are drawn.
func plot(p *tab) rectangle {
	return ask[rectangle](p, `(({ x, y, width }) => ({ x, y, width }))(document.querySelector('.over').getBoundingClientRect())`)
}

// One finger chooses a mark and pans sideways; the details come from below.
func TestTouch(t *testing.T) {
	p := open(t, reports(t)["outages"], 390, 844, theme("light"), call(emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}))
	ask[any](p, `document.getElementById('plot').scrollIntoView({ block: 'start' }); 0`)
	p.picture("phone-timeline", false)
	require.Equal(t, []bool{true, false}, ask[[]bool](p, `[':not(:has(.zero))', ':has(.zero)'].map(some => [...document.querySelectorAll('#table td:is(.failed, .dead)' + some)].some(e => e.checkVisibility()))`),
		"the cards of the table have what failed, and nothing of none")
	for range 2 {
		p.do(chromedp.Click(chromedp.CSS("#zoom-in")))
	}
	range1 := p.text(`document.getElementById('range').textContent + location.hash`)
	ask[any](p, `document.getElementById('plot').scrollIntoView({ block: 'start' }); 0`)
	box := plot(p)
	touch := func(kind input.DispatchTouchEventType, points ...*input.TouchPoint) step {
		return call(input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: append([]*input.TouchPoint{}, points...)})
	}
	lane := box.Y + 45 // that of the faults begins at 38
	p.do(touch(input.DispatchTouchEventTypeTouchStart, &input.TouchPoint{X: box.X + 200, Y: lane}))
	for x := 200.0; x >= 60; x -= 20 {
		p.do(touch(input.DispatchTouchEventTypeTouchMove, &input.TouchPoint{X: box.X + x, Y: lane}))
	}
	p.do(touch(input.DispatchTouchEventTypeTouchEnd))
	require.Equal(t, range1, p.text(`document.getElementById('range').textContent + location.hash`), "a pan keeps the zoom")
	p.do(chromedp.Click(chromedp.CSS("#zoom-out")), chromedp.Click(chromedp.CSS("#zoom-out")), chromedp.Click(chromedp.CSS("#zoom-out")))
	ask[any](p, `document.getElementById('plot').scrollIntoView({ block: 'start' }); 0`)
	box = plot(p)
	p.do(touch(input.DispatchTouchEventTypeTouchStart, &input.TouchPoint{X: box.X + 0.58*box.Width, Y: box.Y + 53}), touch(input.DispatchTouchEventTypeTouchEnd))
	require.NotEmpty(t, p.text(`document.getElementById('said').textContent`))
	require.Equal(t, "fixed", p.text(`getComputedStyle(document.getElementById('panel')).position`))
	require.Equal(t, "panel", p.text(`new Promise(done => {
		const at = () => document.activeElement.id;
		if (at() === 'panel') done(at());
		document.addEventListener('focusin', () => done(at()));
		setTimeout(() => done(at()), 5000);
	})`), "the focus is in the sheet")
	p.picture("phone-selected", false)
	require.Empty(t, p.axe(allButContrast))
	p.do(chromedp.KeyEvent(kb.Escape))
	require.Equal(t, "plot", p.text(`document.activeElement.id`), "and back where it was")
	p.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter))
	require.Equal(t, "panel", p.text(`document.activeElement.id`), "by the keys, too")
	p.do(chromedp.Click(chromedp.CSS(".close")))
	require.Equal(t, "plot", p.text(`document.activeElement.id`))
}

// Where the calm run fired and this one did not is drawn and told; a late fire's
// bracket reaches back to it.
func TestWhereTheCalmRunFiredIsTold(t *testing.T) {
	p := open(t, reports(t)["what-if"]+"#from=2026-12-27T04:00:00Z&to=2026-12-27T18:00:00Z", 1440, 900, theme("light"))
	require.Contains(t, p.text(`document.getElementById('legend').textContent`), "fired here in the calm run")
	box := plot(p)
	p.do(chromedp.MouseClickXY(box.X+box.Width/2, box.Y+133)) // within the outage, in the first lane of a schedule
	require.Contains(t, p.text(`document.getElementById('said').textContent`), "update_mirrors: 60 fired here in the calm run.")
	p.picture("ghosts", false)
}

// Leases, and faults, that are too near each other to tell apart are told together.
func TestWhatIsTooNearIsToldTogether(t *testing.T) {
	p := open(t, reports(t)["leases"], 390, 800, theme("light"))
	p.do(chromedp.Focus(chromedp.CSS("#plot")))
	told := ""
	for _, key := range []string{kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.ArrowDown, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight, kb.ArrowRight} {
		p.do(chromedp.KeyEvent(key))
		told += p.text(`document.getElementById('said').textContent`) + "\n"
	}
	p.picture("leases", false)
	require.Contains(t, told, "faults in one place")
	require.Regexp(t, `Process led [\d,]+ times, terms [\d,]+ to [\d,]+\.`, told)
}

// What hampers a process, and jobs of no schedule, are drawn and told.
func TestWhatHampersAProcessIsTold(t *testing.T) {
	p := open(t, reports(t)["hostile"], 1440, 900, theme("light"))
	legend := p.text(`document.getElementById('legend').textContent`)
	for _, mark := range []string{"throttled", "cut off from the store", "jobs of no schedule"} {
		require.Contains(t, legend, mark)
	}
	p.do(chromedp.Focus(chromedp.CSS("#plot")), chromedp.KeyEvent(kb.ArrowDown))
	told := ""
	for range 12 {
		told += p.text(`document.getElementById('said').textContent`) + "\n"
		p.do(chromedp.KeyEvent(kb.ArrowRight))
	}
	require.Contains(t, told, "Process 1 was throttled for 20")
	require.Contains(t, told, "Process 1 was cut off for 10")
}

// On paper nothing is wider than the sheet, nothing is folded up, and the colours
// are the light ones.
func TestPaper(t *testing.T) {
	p := open(t, reports(t)["outages"], 1440, 900, theme("dark"))
	p.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}), size(703, 2000))
	require.Equal(t, []float64{1, 1, 1}, ask[[]float64](p, `(dispatchEvent(new Event('beforeprint')), [
		document.documentElement.scrollWidth <= 703, document.querySelector('main details').open, document.documentElement.dataset.theme === 'light'].map(Number))`))
	require.Equal(t, "exact", p.text(`getComputedStyle(document.querySelector('.badge')).printColorAdjust`), "white letters keep their ground")
	p.picture("paper", false)
	require.False(t, ask[bool](p, `(dispatchEvent(new Event('afterprint')), document.querySelector('main details').open)`))
}

// Whatever a name is, it is shown as a text, and nothing that it says is done.
func TestHostileNamesAreText(t *testing.T) {
	p := open(t, reports(t)["hostile"], 1440, 900, theme("light"))
	names := ask[[]string](p, `[...document.querySelectorAll('#table .to-lane')].map(e => e.textContent)`)
	require.Contains(t, names, hostile[0])
	require.Contains(t, names, "\u27e8202E\u27e9gnp.exe")
	require.Len(t, names, len(hostile))
	strange := ask[int](p, `document.querySelectorAll('img, iframe, object, body script:not([type]):nth-of-type(n+3)').length`)
	require.Zero(t, strange)
	p.do(chromedp.Focus(chromedp.CSS("#plot")), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	p.do(chromedp.SendKeys(chromedp.CSS("#search"), "img"), chromedp.KeyEvent(kb.Enter))
	require.Contains(t, p.text(`document.getElementById('panel').textContent`), hostile[0])
}

// A page that breaks its own policy is noticed: these tests can fail.
func TestABrokenPageIsNoticed(t *testing.T) {
	text, err := os.ReadFile(reports(t)["outages"])
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "broken.html")
	broken := strings.Replace(string(text), "<main", `<img src="http://127.0.0.1:1/x.png"><script>alert(1)</script><main`, 1)
	require.NoError(t, os.WriteFile(file, []byte(broken), 0o644))
	p := newTab(t, func(p *tab, event any) {
		if e, ok := event.(*log.EventEntryAdded); ok {
			p.complain("%s", e.Entry.Text)
		}
	})
	p.do(chromedp.Navigate("file://" + file))
	require.Contains(t, strings.Join(p.axe(everything), "\n"), "image-alt")
	p.mu.Lock()
	faults := strings.Join(p.faults, "\n")
	p.mu.Unlock()
	require.Contains(t, faults, "img-src")
	require.Contains(t, faults, "script-src")
}

// A rule that was broken is shown where it was, with what led to it.
func TestAViolationIsShownWithItsCauses(t *testing.T) {
	p := open(t, reports(t)["violation"], 1440, 900, theme("light"))
	p.do(chromedp.Click(chromedp.CSS(".problem button")))
	require.Contains(t, p.text(`document.getElementById('said').textContent`), "Broken: fence")
	require.Contains(t, p.text(`document.querySelector('.chain').textContent`), "Process 1 stood still")
	require.Equal(t, 3., ask[float64](p, `document.querySelectorAll('.sides li').length`), "both leases, and the tick of who led no more")
	require.Contains(t, p.text(`document.querySelector('.problem pre').textContent`), "pause runner=1", "the least scenario")
	p.picture("violation-causes", false)
}

// The link of a page says what to look at.
func TestALinkLeadsToAPlace(t *testing.T) {
	file := reports(t)["outages"]
	p := open(t, file+"#sel=F9&theme=dark", 1440, 900, theme("light"))
	require.Contains(t, p.text(`document.getElementById('said').textContent`), "down for 2\u00a0d 14\u00a0h")
	require.Equal(t, "dark", p.text(`document.documentElement.dataset.theme`))
	require.Contains(t, p.text(`JSON.parse(document.getElementById('data').textContent).faults[8].text`), "during 7d12h5m..10d2h5m down")
	p.picture("fault-dark", false)
}
