// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/bundle/lint"
	"github.com/regatta-sh/regatta/engine/bundle/lint/deep"
	"github.com/regatta-sh/regatta/engine/prove"
)

// idleWorlds is how many inputs are tried of each point. Most rules are true of one of the first hundred.
const idleWorlds = 2000

// idleSearch searches for inputs that make rules true. Its engine is made when it is needed.
type idleSearch struct {
	*commands
	// left is how long the searches may take from now on.
	left    time.Duration
	builtin *bundle.Bundle
	engine  *engine.Engine
}

func (s *idleSearch) closeEngine() {
	if s.engine != nil {
		s.engine.Close()
	}
}

// findNotes returns notes of the rules that no input made true. It warns if a bundle was not searched, or not to
// the end.
func (s *idleSearch) findNotes(cmd *cobra.Command, path string, b *bundle.Bundle, found []lint.Finding) ([]lint.Finding, error) {
	warn := func(format string, args ...any) {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: "+format+"\n", args...)
	}
	if s.engine == nil {
		var err error
		if s.builtin, err = bundle.ReadBuiltin(s.commands.builtin); err != nil {
			return nil, err
		}
		if s.engine, err = engine.FromBundle(s.builtin, engine.WithPoints()); err != nil {
			return nil, fmt.Errorf("reading the built-in policies: %w", err)
		}
	}
	if _, err := gate.New(s.builtin, gate.WithRunner(s.runner)).AdmitBundle(cmd.Context(), b, nil, nil); err != nil {
		if cmd.Context().Err() != nil {
			return nil, cmd.Context().Err()
		}
		warn("%s is not searched, since the gate refuses it: regatta policy verify says why", path)
		return nil, nil
	}
	if s.left <= 0 {
		warn("%s is not searched, since the time was over: raise --timeout", path)
		return nil, nil
	}
	files, err := readCases(path)
	if err != nil {
		return nil, err
	}
	limits := prove.DefaultLimits()
	limits.Worlds, limits.Timeout = idleWorlds, s.left
	start := time.Now()
	idle, err := prove.FindIdleRules(cmd.Context(), prove.Question{
		New: prove.Side{Builtin: s.builtin, Set: bundle.Set{b}}, Engine: s.engine, Cases: files, Limits: limits,
	})
	s.left -= time.Since(start)
	switch {
	case errors.Is(err, prove.ErrLate):
		warn("%s is not searched: %v", path, err)
		return nil, nil
	case err != nil:
		return nil, wrapRefusal(prefixProblemPaths(path, err))
	case idle.Stopped != "":
		warn("%s is not searched to the end: %s", path, idle.Stopped)
	}
	return deep.NoteIdleRules(idle.Rules, found), nil
}
