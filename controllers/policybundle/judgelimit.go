// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How often the bundles of a namespace are checked before they are stored: a check takes up to seconds of a processor, and a dry run
// stores nothing.
const (
	judgeEvery = 5 * time.Second
	judgeBurst = 5
	// mostJudged bounds the namespaces that are remembered.
	mostJudged = 1000
)

// judgeLimits bound the checks of each namespace. The zero value is ready.
type judgeLimits struct {
	mu         sync.Mutex
	namespaces map[string]*rate.Limiter
}

// allowCheck reports whether another bundle of a namespace may be checked now. Bundles of the platform, whose namespace is empty, always
// may.
func (l *judgeLimits) allowCheck(namespace string, now time.Time) bool {
	if namespace == "" {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.namespaces[namespace]
	if known == nil {
		if len(l.namespaces) >= mostJudged {
			maps.DeleteFunc(l.namespaces, func(_ string, r *rate.Limiter) bool { return r.TokensAt(now) >= judgeBurst })
		}
		if len(l.namespaces) >= mostJudged {
			return false
		}
		if l.namespaces == nil {
			l.namespaces = map[string]*rate.Limiter{}
		}
		known = rate.NewLimiter(rate.Every(judgeEvery), judgeBurst)
		l.namespaces[namespace] = known
	}
	return known.AllowN(now, 1)
}
