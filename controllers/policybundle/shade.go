package policybundle

import (
	"context"
	"fmt"

	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// shade has every bundle that is in shadow compared with what decides now: with
// each set of bundles that decide, what a shadow would change is another.
func (l *Library) shade(ctx context.Context) error {
	if l.shadows == nil {
		return nil
	}
	for key, s := range l.stands {
		if s.Shadow == nil {
			l.shadows.Stop(key.String())
			continue
		}
		candidate, err := l.engine.Compile(ctx, append(l.set(key), s.Shadow))
		if err != nil {
			l.shadows.Stop(key.String())
			return fmt.Errorf("putting bundle %s into shadow: %w", key, err)
		}
		var opts []record.WatchOption
		if ns := key.Namespace; ns != "" {
			opts = append(opts, record.Only(func(s decision.Subject) bool { return s.Namespace == ns }))
		}
		l.shadows.Watch(key.String(), candidate, opts...)
	}
	return nil
}

// Tally is how the decisions of a bundle in shadow compare.
func (l *Library) Tally(key Key) (record.Tally, bool) {
	if l.shadows == nil {
		return record.Tally{}, false
	}
	return l.shadows.Tally(key.String())
}
