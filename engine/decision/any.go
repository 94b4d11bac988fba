// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// UntypedPoint is a Point whose types are known only while the program runs: for tools
// that treat every point alike, such as replay, schemas and the command line.
type UntypedPoint struct {
	Name   Name
	Budget time.Duration
	// MaxResult and MaxBytes have their defaults here.
	MaxResult, MaxBytes int
	In, Out             reflect.Type
	// Undecided and Check take and give values of In and Out, not pointers.
	// Check and Lean are never nil here. Answers of another type are Changed.
	Undecided func(in any, strict bool) any
	// StrictWhere and Exemption are as in Point; so is WithBuiltin, which may be nil.
	StrictWhere, Exemption Name
	WithBuiltin            func(in, fallback, builtin any) any
	Check                  func(in, out any) error
	Lean                   func(in, then, now any) Strictness
}

// EraseTypes forgets the types of the point.
func (p Point[In, Out]) EraseTypes() UntypedPoint {
	out := UntypedPoint{
		Name: p.Name, Budget: p.Budget, MaxResult: cmp.Or(p.MaxResult, DefaultMaxResult), MaxBytes: cmp.Or(p.MaxBytes, DefaultMaxBytes),
		In: reflect.TypeFor[In](), Out: reflect.TypeFor[Out](),
		Undecided: func(in any, strict bool) any {
			typed, _ := in.(In) // of another type there is nothing to go by
			return p.FallbackAnswer(typed, strict)
		},
		Check: func(in, out any) error {
			i, ok := in.(In)
			o, ok2 := out.(Out)
			if !ok || !ok2 {
				return fmt.Errorf("the question is a %T and the answer a %T, want %s and %s", in, out, reflect.TypeFor[In](), reflect.TypeFor[Out]())
			}
			if p.Check == nil {
				return nil
			}
			return p.Check(i, o)
		},
		Lean: func(in, then, now any) Strictness {
			i, _ := in.(In) // as with Undecided
			a, ok := then.(Out)
			b, ok2 := now.(Out)
			if p.Lean == nil || !ok || !ok2 {
				return Changed
			}
			return p.Lean(i, a, b)
		},
		StrictWhere: p.StrictWhere, Exemption: p.Exemption,
	}
	if p.WithBuiltin != nil {
		out.WithBuiltin = func(in, fallback, builtin any) any {
			i, ok := in.(In)
			a, ok2 := fallback.(Out)
			b, ok3 := builtin.(Out)
			if !ok || !ok2 || !ok3 {
				return fallback
			}
			return p.WithBuiltin(i, a, b)
		}
	}
	return out
}

// Domain is the part of a name before the slash.
func (n Name) Domain() string {
	domain, _, _ := strings.Cut(string(n), "/")
	return domain
}

// OutputWithOrigin is an answer whose parts say which rule they are from. The engine
// tells it the package to name where a policy named no rule.
type OutputWithOrigin interface{ SetDefaultRules(pkg string) }

// SetDefaultRules names the package as the rule of those holds that name none.
func SetDefaultRules(holds []Hold, pkg string) {
	for i := range holds {
		if holds[i].Rule == "" {
			holds[i].Rule = pkg
		}
	}
}

// CheckReasons refuses elements of a field of an answer that do not say why.
func CheckReasons(field string, holds []Hold) error {
	for i, h := range holds {
		if h.Reason == "" || h.Message == "" {
			return fmt.Errorf("%s[%d] of rule %s has no reason or no message", field, i, h.Rule)
		}
	}
	return nil
}
