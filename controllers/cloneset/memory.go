package cloneset

import (
	"github.com/regatta-sh/regatta/controllers/workload/facts"
)

// memory is what is kept of a CloneSet between reconciles. It only saves work:
// losing it changes no decision.
type memory struct {
	facts *facts.Set
	// limited is the limit that the last event ScaleUpLimited told, -1 for none.
	limited int
}

func newMemory() *memory {
	return &memory{facts: facts.NewSet(), limited: -1}
}
