// SPDX-License-Identifier: Apache-2.0

// Package recovery starts all goroutines of the product. A panic in one of them becomes an error of
// its task, is logged once with its stack, and is counted.
package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

var panics = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "regatta_panics_total",
	Help: "Panics that were recovered, by the component in which they happened. Each is a bug to report; the log has its stack.",
}, []string{"component"})

// PanicCollector has the count of panics.
func PanicCollector() prometheus.Collector { return panics }

// Panic is the error that a recovered panic becomes.
type Panic struct {
	Component string
	Value     any
}

// Error implements error. The stack is in the log only: errors end up in conditions and events.
func (p *Panic) Error() string {
	text := fmt.Sprint(p.Value)
	if len(text) > maxText { // a panic may contain text of a user
		text = text[:maxText] + "..."
	}
	return fmt.Sprintf("%s panicked: %s", p.Component, text)
}

const maxText = 1 << 10

// Logger is called for each panic.
type Logger func(p *Panic, stack []byte)

var logger atomic.Pointer[Logger]

// SetLogger replaces the logger, which is slog's default.
func SetLogger(l Logger) { logger.Store(&l) }

// CountPanic counts a panic that is logged elsewhere.
func CountPanic(component string) { panics.WithLabelValues(component).Inc() }

// ReportPanic counts and logs the value of a panic that the caller recovered, and returns it as an error.
func ReportPanic(component string, value any) error {
	p := &Panic{Component: component, Value: value}
	CountPanic(component)
	if l := logger.Load(); l != nil {
		(*l)(p, debug.Stack())
	} else {
		slog.Error("Recovered a panic", "component", component, "error", p.Error(), "stack", string(debug.Stack()))
	}
	return p
}

// Call calls f. It returns a panic of f as an error.
func Call(component string, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = ReportPanic(component, value)
		}
	}()
	return f()
}

// Go calls f in a goroutine of its own. If f panics, ended is called with the error, unless it is nil.
func Go(component string, f func(), ended func(error)) {
	go func() {
		if err := Call(component, func() error { f(); return nil }); err != nil && ended != nil {
			ended(err)
		}
	}()
}

// GoUntilDone calls f in a goroutine of its own, and again after a pause for as long as it panics
// and ctx is not done.
func GoUntilDone(ctx context.Context, component string, f func(context.Context)) {
	go func() {
		_ = CallUntilDone(ctx, component, func(ctx context.Context) error { f(ctx); return nil })
	}()
}

// CallUntilDone calls f, and again after a pause for as long as it panics and ctx is not done.
func CallUntilDone(ctx context.Context, component string, f func(context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		panicked := true
		err := Call(component, func() error {
			err := f(ctx)
			panicked = false
			return err
		})
		if !panicked {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

const (
	firstPause   = 100 * time.Millisecond
	longestPause = time.Minute
)

// Group is an errgroup whose functions may panic.
type Group struct {
	component string
	group     errgroup.Group
}

// NewGroup makes a group that calls at most limit functions at once; without a limit if that is 0.
func NewGroup(component string, limit int) *Group {
	g := &Group{component: component}
	if limit > 0 {
		g.group.SetLimit(limit)
	}
	return g
}

// Go calls f in a goroutine of its own, once the limit allows.
func (g *Group) Go(f func() error) { g.group.Go(func() error { return Call(g.component, f) }) }

// Wait waits for all functions, and returns the first error.
func (g *Group) Wait() error { return g.group.Wait() }

// WaitGroup is a sync.WaitGroup whose functions may panic.
type WaitGroup struct{ group sync.WaitGroup }

// Go calls f in a goroutine of its own. If f panics, ended is called with the error.
func (g *WaitGroup) Go(component string, f func(), ended func(error)) {
	g.group.Go(func() {
		if err := Call(component, func() error { f(); return nil }); err != nil && ended != nil {
			ended(err)
		}
	})
}

// Wait waits for all functions.
func (g *WaitGroup) Wait() { g.group.Wait() }
