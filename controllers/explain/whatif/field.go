// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// unknownFact says that an input has no fact at a path.
type unknownFact struct {
	// deep is how many steps of the path the input has, and distance how much the next name differs from the nearest one there.
	deep, distance int
	message        string
}

func (e *unknownFact) Error() string { return e.message }

// isNearerThan reports whether the input has more of the path than another one.
func (e *unknownFact) isNearerThan(other *unknownFact) bool {
	return other == nil || e.deep > other.deep || e.deep == other.deep && e.distance < other.distance
}

// resolveField finds the type of a fact in the type of an input. Names in a map may be any.
func resolveField(input reflect.Type, steps []step) (reflect.Type, *unknownFact) {
	t, inMap := input, false
	for i, s := range steps {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		fail := func(format string, args ...any) (reflect.Type, *unknownFact) {
			return nil, &unknownFact{deep: i, distance: math.MaxInt, message: fmt.Sprintf(format, args...)}
		}
		before := "the input"
		if i > 0 {
			before = joinPath(steps[:i])
		}
		switch kind := t.Kind(); {
		case kind == reflect.Interface:
			return t, nil
		case kind == reflect.Struct && !s.isList:
			fields := jsonFields(t)
			next, ok := fields[s.name]
			if !ok {
				names, distance := nearestNames(s.name, slices.Sorted(maps.Keys(fields)))
				_, unknown := fail("%s has no field %s; it has %s", before, s.name, names)
				unknown.distance = distance
				return nil, unknown
			}
			t, inMap = next, false
		case kind == reflect.Map && !s.isList:
			t, inMap = t.Elem(), true
		case kind == reflect.Slice && s.isList:
			t, inMap = t.Elem(), false
		case kind == reflect.Slice:
			return fail("%s is a list, and %q is no index: write %s[0]", before, s.name, before)
		case s.isList:
			return fail("%s is no list, so [%d] names nothing in it", before, s.index)
		case inMap:
			return fail("%s has no fields; write a key that has dots in brackets: %s", before, joinPath(append(slices.Clone(steps[:i-1]), step{name: joinNames(steps[i-1:])})))
		default:
			return fail("%s has no fields", before)
		}
	}
	return t, nil
}

// joinNames writes names with dots in between, as a key of a label may have them.
func joinNames(steps []step) string {
	var names []string
	for _, s := range steps {
		if s.isList {
			break
		}
		names = append(names, s.name)
	}
	return strings.Join(names, ".")
}

// jsonFields returns the fields of a struct by their names in JSON, those of embedded structs too.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || name == "" {
			continue
		}
		out[name] = f.Type
	}
	return out
}

// namesTold is how many names an error suggests.
const namesTold = 5

// nearestNames lists the names that are most like a name, the nearest first, and returns how much that one differs.
func nearestNames(name string, known []string) (text string, nearest int) {
	distance := make(map[string]int, len(known))
	for _, k := range known {
		distance[k] = editDistance(strings.ToLower(name), strings.ToLower(k))
	}
	slices.SortStableFunc(known, func(a, b string) int { return distance[a] - distance[b] })
	text = strings.Join(known[:min(len(known), namesTold)], ", ")
	if more := len(known) - namesTold; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(known) == 0 {
		return "none", math.MaxInt
	}
	return text, distance[known[0]]
}

// editDistance is how many bytes have to be added, removed or replaced to make one name of another.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// checkType returns an error if a value is not of the type of a fact. It names the fact, and a field in it.
func checkType(fact string, t reflect.Type, value json.RawMessage) error {
	if err := decodeStrictly(value, reflect.New(t).Interface()); err != nil {
		message := err.Error()
		if rest, whole := strings.CutPrefix(message, "it "); whole {
			return fmt.Errorf("%s %s", fact, rest)
		}
		return fmt.Errorf("%s: %s", fact, message)
	}
	return nil
}
