// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// wrongValues are of types that a field may not have.
var wrongValues = []any{"3", "x%", true, -1.5, []any{"a", nil}, map[string]any{"a": int64(1)}}

// damageFields calls a function for each field and item of a value that may be another one: with a setter, and its path.
func damageFields(value any, path string, visit func(path string, set func(any), remove func())) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			field, at := v[key], path+"."+key
			visit(at, func(other any) { v[key] = other }, func() { delete(v, key) })
			v[key] = field
			damageFields(field, at, visit)
		}
	case []any:
		for i, item := range v {
			visit(path+"[]", func(other any) { v[i] = other }, func() { v[i] = nil })
			v[i] = item
			damageFields(item, path+"[]", visit)
		}
	}
}

// checkScripts runs all scripts of a kind on an object. Each must end in time, with an answer or, if it is an action, with a reason.
func checkScripts(m *luaMachine, scripts Kind, fields map[string]any) error {
	if _, err := judgeObject(m, scripts.Health, fields); err != nil {
		return fmt.Errorf("health: %w", err)
	}
	if scripts.Discovery == "" {
		return nil
	}
	if _, err := discoverActions(m, scripts.Discovery, fields); err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	for _, action := range scripts.Actions {
		result, err := m.runScript(action.Script, fields)
		if err != nil && isOwnReason(err.Error()) {
			continue
		}
		if _, isObject := result.(map[string]any); err != nil || !isObject {
			return fmt.Errorf("action %s: %v, %w", action.Name, result, err)
		}
	}
	return nil
}

// isOwnReason reports whether an error is one that a script gives as a sentence. Errors of Lua name a place in the script.
func isOwnReason(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	return !strings.Contains(line, "<string>") && !strings.Contains(line, "attempt to") && !strings.Contains(line, "undefined global")
}

// isOfPod reports whether a field is of the pods in a template. No script reads these.
func isOfPod(path string) bool {
	return strings.Contains(path, ".containers[]") || strings.Contains(path, ".volumes[]") || strings.Contains(path, ".ephemeralContainers[]")
}

// No field that is missing or has another type is an error of Lua.
func TestDamagedObjects(t *testing.T) {
	scripts, m := readScripts(t), newMachine(t)
	seen, damaged := map[string]int{}, 0
	for _, s := range serveAll(t) {
		damageFields(s.fields, "", func(path string, set func(any), remove func()) {
			key := s.kind.Kind + s.version + path
			if seen[key]++; seen[key] > 2 {
				return
			}
			check := func(what any) {
				damaged++
				if err := checkScripts(m, scripts[s.kind], s.fields); err != nil {
					t.Errorf("%s, %s is %v: %v", s, path, what, err)
				}
			}
			remove()
			check("missing")
			if isOfPod(path) {
				return
			}
			for _, other := range wrongValues {
				set(runtime.DeepCopyJSONValue(other))
				check(other)
			}
		})
		if seen[s.kind.Kind]++; seen[s.kind.Kind] > 1 {
			continue
		}
		for _, other := range wrongValues {
			for _, field := range []string{"spec", "status", "metadata"} {
				if err := checkScripts(m, scripts[s.kind], map[string]any{field: other}); err != nil {
					t.Errorf("%s with nothing but %s %v: %v", s.kind.Kind, field, other, err)
				}
			}
		}
	}
	if damaged < 5_000 {
		t.Errorf("%d objects were damaged", damaged)
	}
}

// growLists repeats the items of all lists of the status.
func growLists(value any, times int) any {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			v[key] = growLists(field, times)
		}
		if named, ok := v["podStates"].(map[string]any); ok {
			for i := range 10 * times {
				named[fmt.Sprintf("pod-%d", i)] = map[string]any{}
			}
		}
	case []any:
		return slices.Repeat(v, times)
	}
	return value
}

// All scripts of a kind together need less time than Argo CD gives one, with 1,000 conditions, subsets, replicas or tags.
func TestLargeObjects(t *testing.T) {
	scripts, m := readScripts(t), newMachine(t)
	seen := map[string]bool{}
	for _, s := range serveAll(t) {
		id := s.kind.Kind + s.version
		if seen[id] {
			continue
		}
		seen[id] = true
		s.fields["status"] = growLists(s.fields["status"], 1000)
		begin := time.Now()
		if err := checkScripts(m, scripts[s.kind], s.fields); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		if took := time.Since(begin); took > runtimeLimit {
			t.Errorf("%s: all scripts together took %s", s, took)
		}
	}
}
