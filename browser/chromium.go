package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is for a machine with much else to do: only a browser that hangs is
// to come to its end.
const patience = 5 * time.Minute

// Start starts a Chromium with a fresh profile, which ends with ctx or by stop.
// Contexts of its tabs are made of the one that it answers, by
// [chromedp.NewContext].
func Start(ctx context.Context) (chromium context.Context, stop func(), err error) {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, nil, errors.New("there is no Chromium: scripts/setup installs it where apt has it")
	}
	allocated, release := chromedp.NewExecAllocator(ctx,
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("force-device-scale-factor", "1"),
		chromedp.WSURLReadTimeout(patience))
	chromium, end := chromedp.NewContext(allocated)
	stop = func() {
		end()
		release()
	}
	if err := chromedp.Do(chromium); err != nil {
		stop()
		return nil, nil, fmt.Errorf("starting Chromium: %w", err)
	}
	return chromium, stop, nil
}
