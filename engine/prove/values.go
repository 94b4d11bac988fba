// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"encoding/json"
	"math"
	"reflect"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Bounds of the values that one fact has.
const (
	maxValues = 16
	maxTimes  = 240 // a choice has a byte
)

// fresh is a text that no rule knows.
const fresh = "fresh"

// factValues returns the values that a fact has beside the one of the base, as they are in JSON, and
// whether there would be more.
func factValues(f *fact, t reflect.Type) (values []any, more bool) {
	var out []any
	most := maxValues
	switch {
	case t.Kind() == reflect.Bool:
		out = []any{false, true}
	case f.clock && isInteger(t):
		out, most = clockValues(f), maxTimes
	case isInteger(t), t.Kind() == reflect.Float64:
		out = numberValues(f, !isInteger(t))
	case t.Kind() == reflect.String:
		out = textValues(f)
	}
	var distinct []any
	for _, v := range out {
		if !slices.ContainsFunc(distinct, func(o any) bool { return reflect.DeepEqual(o, v) }) {
			distinct = append(distinct, v)
		}
	}
	return distinct[:min(len(distinct), most)], len(distinct) > most || len(f.constants) >= maxConstants
}

func isInteger(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

// isStructured reports whether a type has parts.
func isStructured(t reflect.Type) bool {
	return t != nil && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map || t.Kind() == reflect.Slice)
}

// numberValues returns the numbers around each constant, zero and one.
func numberValues(f *fact, fractions bool) []any {
	out := []any{json.Number("0"), json.Number("1")}
	for _, c := range sortedConstants(f) {
		n, ok := numberOf(c)
		if !ok || math.Abs(n) > 1<<53 {
			continue
		}
		by := 1.0
		if fractions && n != math.Trunc(n) {
			by = precisionOf(n)
		} else if !fractions {
			n = math.Floor(n)
		}
		for _, v := range []float64{n, n + by, n - by} {
			out = append(out, json.Number(formatNumber(v)))
		}
	}
	return out
}

// precisionOf returns the last decimal place of a number: 0.01 for 0.25.
func precisionOf(n float64) float64 {
	_, digits, _ := strings.Cut(formatNumber(n), ".")
	return math.Pow10(-len(digits))
}

func sortedConstants(f *fact) []*ast.Term {
	out := make([]*ast.Term, 0, len(f.constants))
	for _, t := range f.constants {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *ast.Term) int { return a.Value.Compare(b.Value) })
	return out
}

// textValues returns each constant, the empty text, a text that no rule knows, and examples of patterns.
func textValues(f *fact) []any {
	out := []any{fresh, ""}
	numeric := f.asNumber
	for _, c := range sortedConstants(f) {
		if text, ok := c.Value.(ast.String); ok {
			out = append(out, string(text), string(text)+fresh)
			out = append(out, f.textVariants(string(text))...)
		}
		if n, ok := numberOf(c); ok && numeric {
			by := precisionOf(n)
			for _, v := range []float64{n, n + by, n - by} {
				out = append(out, formatNumber(math.Round(v/by)*by))
			}
		}
	}
	for _, p := range inOrder(f.patterns) {
		if text, ok := p.Value.(ast.String); ok {
			out = append(out, patternExamples(string(text))...)
		}
	}
	if numeric {
		out = append(out, "0", "1")
	}
	return out
}

// patternExamples returns texts that a regular expression matches.
func patternExamples(pattern string) []any {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	re = re.Simplify()
	var short, long strings.Builder
	writeExample(&short, re, false)
	writeExample(&long, re, true)
	return []any{short.String(), long.String()}
}

// writeExample writes a text that a regular expression matches; with more, optional parts are there too.
func writeExample(out *strings.Builder, re *syntax.Regexp, more bool) {
	const mostBytes = 256
	if out.Len() > mostBytes {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		out.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			out.WriteRune(re.Rune[0])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		out.WriteByte('x')
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
		for _, sub := range re.Sub {
			writeExample(out, sub, more)
		}
	case syntax.OpStar, syntax.OpQuest:
		if more {
			writeExample(out, re.Sub[0], more)
		}
	case syntax.OpRepeat:
		for range re.Min {
			writeExample(out, re.Sub[0], more)
		}
	case syntax.OpAlternate:
		at := 0
		if more {
			at = len(re.Sub) - 1
		}
		writeExample(out, re.Sub[at], more)
	}
}

// clockValues returns times in nanoseconds: a week, at the hours that rules know and around them, the
// dates that they know, and numbers that they compare times with.
func clockValues(f *fact) []any {
	zones, hours, dates := []*time.Location{}, []time.Duration{}, []time.Time{}
	var out []any
	add := func(t time.Time) { out = append(out, json.Number(strconv.FormatInt(t.UnixNano(), 10))) }
	for _, c := range sortedConstants(f) {
		if n, ok := numberOf(c); ok && math.Abs(n) < math.MaxInt64 {
			for by := int64(-1); by <= 1; by++ {
				out = append(out, json.Number(strconv.FormatInt(int64(n)+by, 10)))
			}
		}
		text, ok := c.Value.(ast.String)
		if !ok {
			continue
		}
		if at, err := time.Parse("15:04", string(text)); err == nil {
			hours = append(hours, time.Duration(at.Hour())*time.Hour+time.Duration(at.Minute())*time.Minute)
		} else if at, err := time.Parse(time.DateOnly, string(text)); err == nil {
			dates = append(dates, at)
		} else if zone, err := time.LoadLocation(string(text)); err == nil && text != "" {
			zones = append(zones, zone)
		}
	}
	// UTC is a means of calculation where there is another time zone.
	if other := slices.DeleteFunc(slices.Clone(zones), func(z *time.Location) bool { return z == time.UTC }); len(other) > 0 {
		zones = other
	} else {
		zones = []*time.Location{time.UTC}
	}
	monday := time.Date(2026, 3, 9, 0, 0, 0, 0, time.UTC)
	week := make([]time.Time, 0, 7)
	for day := range 7 {
		week = append(week, monday.AddDate(0, 0, day))
	}
	at := func(days []time.Time, hour, by time.Duration) {
		for _, date := range days {
			for _, zone := range zones {
				add(time.Date(date.Year(), date.Month(), date.Day(), int(hour/time.Hour), int(hour%time.Hour/time.Minute), 0, 0, zone).Add(by))
			}
		}
	}
	at(week, 12*time.Hour, 0)
	at(dates, 12*time.Hour, 0)
	for _, by := range []time.Duration{0, -time.Minute, time.Minute} {
		for _, hour := range hours {
			at(week, hour, by)
		}
	}
	for _, hour := range hours {
		at(dates, hour, 0)
	}
	return out
}
