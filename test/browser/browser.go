// SPDX-License-Identifier: Apache-2.0

// Package browser opens pages in a headless Chromium, as users see them.
package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/regatta-sh/regatta/test/debian"
)

const (
	// chineseFont is a font with which Chromium draws Chinese text.
	chineseFont = "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc"
	// actionTimeout is how long one action may take.
	actionTimeout = time.Minute
	// pollInterval is the time between two looks at a page that a test waits for.
	pollInterval = 100 * time.Millisecond
	// maxProblems is how many messages of the console are kept.
	maxProblems = 100
)

// findChromium returns the path of Chromium on this machine.
func findChromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium on this machine")
}

// Install installs Debian's Chromium unless the machine has one, and a font for Chinese text.
func Install(ctx context.Context, out io.Writer) error {
	return debian.Install(ctx, out, "tests of pages",
		debian.Requirement{Package: "chromium", IsPresent: func() bool { _, err := findChromium(); return err == nil }},
		debian.Requirement{Package: "fonts-wqy-microhei", IsPresent: func() bool { _, err := os.Stat(chineseFont); return err == nil }})
}

// Page is a page in a browser of its own.
type Page struct {
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// Open starts a browser for pages in a language, such as en or zh-CN. The browser ends with ctx.
func Open(ctx context.Context, language string) (*Page, error) {
	path, err := findChromium()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 900),
		chromedp.Flag("lang", language), chromedp.Flag("accept-lang", language))
	allocated, _ := chromedp.NewExecAllocator(ctx, options...)
	tab, _ := chromedp.NewContext(allocated)
	p := &Page{ctx: tab}
	console := chromedp.Console(tab) // it starts the browser
	go func() {
		for message, err := range console {
			if err != nil {
				return
			}
			if message.Type == chromedp.ConsoleError || message.Type == chromedp.ConsoleException {
				p.noteProblem(message.Text + " " + message.URL)
			}
		}
	}()
	if err := chromedp.Do(tab, chromedp.Navigate("about:blank")); err != nil {
		return nil, fmt.Errorf("starting Chromium: %w", err)
	}
	return p, nil
}

func (p *Page) noteProblem(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, text)
	}
}

// Problems returns the errors of the console of the browser: exceptions, and what a policy of the page's server blocks.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.problems...)
}

// Navigate goes to an address and waits until the page has loaded.
func (p *Page) Navigate(address string) error {
	return p.do(chromedp.Navigate(address))
}

func (p *Page) do(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(p.ctx, actionTimeout)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

// Evaluate returns the value of an expression in JavaScript.
func Evaluate[T any](p *Page, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, actionTimeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		return value, fmt.Errorf("evaluating %s: %w", expression, err)
	}
	return value, nil
}

// Text returns the text of the element that a CSS selector selects, as a user reads it; "" if there is none.
func (p *Page) Text(selector string) (string, error) {
	return Evaluate[string](p, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}

// WaitUntil waits until an expression in JavaScript is true. The error has the text of the page.
func (p *Page) WaitUntil(expression string, timeout time.Duration) error {
	for until := time.Now().Add(timeout); ; time.Sleep(pollInterval) {
		is, err := Evaluate[bool](p, "Boolean("+expression+")")
		if err != nil {
			return err
		}
		if is {
			return nil
		}
		if time.Now().After(until) {
			text, _ := p.Text("body")
			return fmt.Errorf("after %s, %s is not true; the page says:\n%s", timeout, expression, text)
		}
	}
}

// Press presses a key of the keyboard, such as those of package kb, where the focus is.
func (p *Page) Press(key string) error {
	return p.do(chromedp.KeyEvent(key))
}

// Screenshot returns a picture of the whole page as PNG, in the color scheme light or dark of the system.
func (p *Page) Screenshot(scheme string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, actionTimeout)
	defer cancel()
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		return nil, err
	}
	return chromedp.Run(ctx, chromedp.FullScreenshot(100))
}
